// Package overrides watches an operator's ConfigMaps, tries each change before it
// counts, and keeps the last good one.
package overrides

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/agynio/k8s-runner/engine"
	"github.com/agynio/k8s-runner/layers"
	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/render"
	"github.com/agynio/k8s-runner/workload"
)

// Prober tries layers before they count.
type Prober interface {
	// Probe returns an engine of layers. Its error says what is wrong with them,
	// each finding on a line that starts with layer/file:line.
	Probe(ctx context.Context, layers []render.Layer) (*engine.Engine, error)
}

// Recorder tells an operator what became of an edit.
type Recorder interface {
	// Record makes an Event of the ConfigMap.
	Record(ctx context.Context, about *corev1.ConfigMap, good bool, reason, message string)
}

// Meter counts what became of edits.
type Meter interface {
	TemplatesLoaded(at time.Time)
	TemplatesRejected()
}

// Store serves the engine of the last good layers.
type Store struct {
	prober   Prober
	recorder Recorder
	meter    Meter
	log      *logrus.Logger
	// allowed asks whether the Role lets us read the ConfigMaps.
	allowed  func(context.Context) error
	factory  informers.SharedInformerFactory
	informer cache.SharedIndexInformer
	changed  chan struct{}
	loaded   chan struct{}
	current  atomic.Pointer[State]
}

// New returns a Store of the ConfigMaps in namespace.
func New(client kubernetes.Interface, namespace string, prober Prober, recorder Recorder, meter Meter, log *logrus.Logger) (*Store, error) {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0,
		informers.WithNamespace(namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = workload.LabelTemplates }),
	)
	s := &Store{
		prober: prober, recorder: recorder, meter: meter, log: log, factory: factory,
		allowed: func(ctx context.Context) error {
			_, err := client.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{LabelSelector: workload.LabelTemplates, Limit: 1})
			return err
		},
		informer: factory.Core().V1().ConfigMaps().Informer(),
		changed:  make(chan struct{}, 1),
		loaded:   make(chan struct{}),
	}
	s.current.Store(&State{})
	signal := func(any) {
		select {
		case s.changed <- struct{}{}:
		default: // one is waiting, and will see this change too
		}
	}
	if _, err := s.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: signal, UpdateFunc: func(_, m any) { signal(m) }, DeleteFunc: signal,
	}); err != nil {
		return nil, fmt.Errorf("watching the templates: %w", err)
	}
	return s, nil
}

// Run watches until ctx ends. A Role that does not allow it leaves the shipped
// templates as they are.
func (s *Store) Run(ctx context.Context) error {
	if err := s.allowed(ctx); apierrors.IsForbidden(err) {
		s.log.WithField("cause", "the Role allows no list of ConfigMaps").Warn("the shipped templates are used; ConfigMaps are not read")
		s.reload(ctx)
		close(s.loaded)
		<-ctx.Done()
		return nil
	}
	s.factory.Start(ctx.Done())
	defer s.factory.Shutdown()
	if !cache.WaitForCacheSync(ctx.Done(), s.informer.HasSynced) {
		return fmt.Errorf("reading the templates: %w", context.Cause(ctx))
	}
	s.reload(ctx)
	close(s.loaded)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.changed:
			s.reload(ctx)
		}
	}
}

// WaitForSync returns once there is something to render with, or a reason why
// there is not.
func (s *Store) WaitForSync(ctx context.Context) error {
	select {
	case <-s.loaded:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("reading the templates: %w", context.Cause(ctx))
	}
}

// Current returns what is served now. One that is in use never changes.
func (s *Store) Current() *State { return s.current.Load() }

// Render renders with the engine of this moment.
func (s *Store) Render(req *runnerv1.StartWorkloadRequest) (*workload.Spec, *render.Manifests, error) {
	state := s.Current()
	if state.Engine == nil {
		return nil, nil, workload.Errorf(workload.FailedPrecondition, "templates_rejected",
			"the operator's templates have faults, and none were good since the start: %s", strings.Join(state.findings(), "\n"))
	}
	return state.Engine.Render(req)
}

// reload tries the ConfigMaps as they are now.
func (s *Store) reload(ctx context.Context) {
	maps := s.configMaps()
	before := s.Current()
	if before.knows(maps) {
		return
	}
	e, err := s.try(ctx, maps)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		s.reject(ctx, before, maps, err)
		return
	}
	state := &State{Engine: e, Layers: described(maps), LoadedAt: time.Now()}
	s.current.Store(state)
	s.meter.TemplatesLoaded(state.LoadedAt)
	s.log.WithFields(logrus.Fields{"layers": len(maps), "digest": e.Digest()}).Info("templates loaded")
	for _, m := range maps {
		if !before.serves(m) {
			s.recorder.Record(ctx, m, true, "TemplatesLoaded", "the runner renders with it from now on")
		}
	}
}

// try makes a fault of a panic: what an operator writes must not end the runner.
func (s *Store) try(ctx context.Context, maps []*corev1.ConfigMap) (e *engine.Engine, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Errorf("trying the templates: panic: %v\n%s", p, debug.Stack())
			err = errors.New("the runner has a fault of its own in trying them; its log has the cause")
		}
	}()
	all, err := layers.Of(maps)
	if err != nil {
		return nil, err
	}
	return s.prober.Probe(ctx, all)
}

// reject keeps what was served and tells everyone why.
func (s *Store) reject(ctx context.Context, before *State, maps []*corev1.ConfigMap, err error) {
	findings := findingsOf(err)
	about := before.concerned(maps, findings)
	state := *before
	state.Rejection = &Rejection{Findings: findings, At: time.Now(), ConfigMaps: names(about), tried: described(maps)}
	s.current.Store(&state)
	s.meter.TemplatesRejected()
	s.log.WithError(err).Error("templates rejected; those before them stay")
	for _, m := range about {
		told := linesAbout(findings, m.Name)
		if len(told) == 0 {
			told = findings
		}
		s.recorder.Record(ctx, m, false, "TemplatesRejected",
			strings.Join(told, "\n")+"\nThe runner goes on with what it had. `k8s-runner templates lint` finds this before an edit.")
	}
}

// configMaps returns those that the cluster has now, in the order of their names.
func (s *Store) configMaps() []*corev1.ConfigMap {
	var maps []*corev1.ConfigMap
	for _, item := range s.informer.GetStore().List() {
		if m, ok := item.(*corev1.ConfigMap); ok {
			maps = append(maps, m)
		}
	}
	slices.SortFunc(maps, func(a, b *corev1.ConfigMap) int { return cmp.Compare(a.Name, b.Name) })
	return maps
}
