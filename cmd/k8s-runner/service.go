package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"k8s.io/client-go/discovery"

	"github.com/agynio/k8s-runner/applier"
	"github.com/agynio/k8s-runner/catalog"
	"github.com/agynio/k8s-runner/cluster/contact"
	"github.com/agynio/k8s-runner/cluster/exec"
	"github.com/agynio/k8s-runner/cluster/files"
	"github.com/agynio/k8s-runner/config"
	"github.com/agynio/k8s-runner/engine"
	"github.com/agynio/k8s-runner/metrics"
	"github.com/agynio/k8s-runner/overlay"
	"github.com/agynio/k8s-runner/overrides"
	"github.com/agynio/k8s-runner/reaper"
	"github.com/agynio/k8s-runner/tracing"
	"github.com/agynio/k8s-runner/workload"
)

// service is a runner with all its parts. It is the only place that knows them
// all.
type service struct {
	config   config.Config
	log      *logrus.Logger
	metrics  *metrics.Metrics
	ready    *readiness
	contact  *contact.Contact
	access   *access
	traces   *tracing.Traces
	operator *overrides.Store
	writer   *applier.Applier
	reads
	commands *exec.Executor
	offered  *catalog.Catalog
	errors   *lastErrors
	began    time.Time
	// platform is nil for a runner without one.
	platform *platform
	// secured is what makes the TCP listener one with TLS.
	secured []grpc.ServerOption

	mu sync.Mutex
	// binding is that of the overlay, once there is one.
	binding *overlay.Binding
}

// newService makes the parts, of which none runs yet.
func newService(c config.Config, log *logrus.Logger) (*service, error) {
	offered, err := loadCatalog(c.Catalog.Path)
	if err != nil {
		return nil, fmt.Errorf("catalog.path (environment CATALOG_PATH): %w", err)
	}
	secured, err := serverCredentials(c, log)
	if err != nil {
		return nil, err
	}
	measured, err := metrics.New()
	if err != nil {
		return nil, err
	}
	reach := contact.New(measured.API)
	access, err := newAccess(c.Kube, reach)
	if err != nil {
		return nil, err
	}
	resources := discovery.ToServerResourcesInterfaceWithContext(access.reads.Discovery())
	s := &service{
		config: c, log: log, metrics: measured, ready: newReadiness(), contact: reach, access: access,
		writer:  applier.New(access.writes, resources, c.Kube.Namespace),
		offered: offered, errors: newLastErrors(), began: time.Now(), secured: secured,
	}
	log.AddHook(s.errors)
	if s.traces, err = tracing.New(context.Background(), c.Traces.Endpoint, log); err != nil {
		return nil, fmt.Errorf("traces.endpoint (environment OTEL_EXPORTER_OTLP_ENDPOINT): %w", err)
	}
	s.writer.Observe(s.starts())
	if s.operator, err = newStore(c, offered, access.reads, access.writes, s.writer, s.metrics.Templates, log); err != nil {
		return nil, err
	}
	if s.reads, err = newReads(access, c.Kube.Namespace); err != nil {
		return nil, err
	}
	if s.platform, err = newPlatform(c, offered, engine.Capabilities(offered, c), s.pods, measured.Reports, log); err != nil {
		return nil, err
	}
	s.commands = exec.New(exec.Options{
		Config: access.config, Client: access.reads, Namespace: c.Kube.Namespace, Pods: s.pods, Log: log,
	})
	return s, nil
}

// newPutter lets archives be unpacked by commands.
func newPutter(commands *exec.Executor) *files.Putter {
	return files.NewPutter(func(ctx context.Context, target workload.Target, argv []string, stdin io.Reader) (files.Result, error) {
		result, err := commands.Simple(ctx, target, argv, stdin)
		return files.Result(result), err
	})
}

func (s *service) starts() starts { return starts{meter: s.metrics.Starts, traces: s.traces} }

// reaper takes away what starts leave that nobody finishes, also those of runners
// that are no more.
func (s *service) reaper() *reaper.Reaper {
	return reaper.New(reaper.Options{
		Starts: s.pods, Deleter: s.writer, Meter: s.metrics.Starts, Log: s.log, Grace: s.config.Starts.Grace,
	})
}

// run runs all parts until ctx ends.
func (s *service) run(ctx context.Context) error {
	listener, err := listen(ctx, "grpc.address", s.config.GRPC.Address)
	if err != nil {
		return err
	}
	defer listener.Close() //nolint:errcheck // nothing to do about it
	collectLessOften()
	group, ctx := errgroup.WithContext(ctx)
	// Caches, metrics and probes are there until the last call has ended.
	called, ended := context.WithCancel(context.WithoutCancel(ctx))
	defer ended()
	if address := s.config.Metrics.Address; address != "" {
		probes, err := listen(ctx, "metrics.address", address)
		if err != nil {
			return err
		}
		s.log.WithField("address", probes.Addr().String()).Info("serving metrics")
		handler := s.metrics.Handler(s.lacks)
		group.Go(func() error { return metrics.Serve(called, probes, handler) })
	}
	group.Go(func() error {
		s.pods.Run(called) // calls in flight wait for what it shows
		return nil
	})
	group.Go(func() error {
		s.claims.Run(called)
		return nil
	})
	group.Go(func() error {
		s.contact.Run(ctx, s.access.askHealth)
		return nil
	})
	group.Go(func() error { return s.operator.Run(ctx) })
	group.Go(func() error {
		s.reaper().Run(ctx)
		return nil
	})
	group.Go(func() error {
		defer ended()
		return s.serveCalls(ctx, listener)
	})
	err = group.Wait()
	if s.platform != nil {
		s.platform.close()
	}
	if closed := s.traces.Close(ctx); closed != nil {
		s.log.WithError(closed).Warn("traces are lost")
	}
	s.log.Info("stopped")
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// lacks says why the runner is not ready, if it is not.
func (s *service) lacks() []string {
	s.mu.Lock()
	binding := s.binding
	s.mu.Unlock()
	if binding == nil {
		return s.ready.lines(s.operator.Current(), s.contact, nil)
	}
	return s.ready.lines(s.operator.Current(), s.contact, binding)
}

func listen(ctx context.Context, setting, address string) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("serving on %s: %w", setting, err)
	}
	return listener, nil
}
