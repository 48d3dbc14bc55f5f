package rpc

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/agynio/k8s-runner/metrics"
	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/render"
	"github.com/agynio/k8s-runner/request"
	"github.com/agynio/k8s-runner/workload"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const id = "00000000-0000-4000-8000-00000000000a"

// maxArchive is small, so that tests need not be large.
const maxArchive = 1 << 20

// secret is an environment value of the test requests.
const secret = "s3cr3t-value"

// fake is a cluster for the server: it remembers what was asked of it, and
// answers what a test says.
type fake struct {
	mu     sync.Mutex
	states map[string]*workload.State
	// err is what every write answers, if set; panics makes it a panic.
	err    error
	panics any

	// claims are the volume keys of claims; mounted are those of the workload.
	claims  map[string]string
	mounted []string

	started []*unstructured.Unstructured
	shown   []*unstructured.Unstructured
	deleted []deletion
	touched []string
	put     []putting
}

// putting is of an archive.
type putting struct {
	Target workload.Target
	Path   string
	Size   int
}

// deletion is of a workload or a claim.
type deletion struct {
	ID    string
	UID   string
	Grace *int64
	// Waited says as what reads show it when the call returns.
	Waited string
}

func (f *fake) write() error {
	if f.panics != nil {
		panic(f.panics)
	}
	return f.err
}

func (f *fake) Render(req *runnerv1.StartWorkloadRequest) (*workload.Spec, *render.Manifests, error) {
	spec, err := request.Parse(req)
	if err != nil {
		return nil, nil, err
	}
	var claims []*unstructured.Unstructured
	for name := range f.claims {
		claims = append(claims, object(name, nil))
	}
	return spec, &render.Manifests{
		Pod: object(workload.PodName(spec.ID), map[string]any{
			// One that no request has: of a capability, or of an operator.
			"containers":     append(named(spec.Main), append(named(spec.Sidecars...), map[string]any{"name": "of-a-template"})...),
			"initContainers": append(named(spec.Inits...), map[string]any{"name": "no-sidecar"}),
		}),
		Owned:  []*unstructured.Unstructured{object("files", nil)},
		Claims: claims,
	}, nil
}

func object(name string, spec map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	o.SetName(name)
	return o
}

func named(containers ...workload.Container) (out []any) {
	for _, c := range containers {
		container := map[string]any{"name": c.Name}
		if c.Restarts {
			container["restartPolicy"] = "Always"
		}
		out = append(out, container)
	}
	return out
}

func (f *fake) Start(_ context.Context, pod *unstructured.Unstructured, owned, claims []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.write(); err != nil {
		return nil, err
	}
	f.started = append(append(append(f.started, pod), owned...), claims...)
	return append([]*unstructured.Unstructured{pod}, claims...), nil
}

func (f *fake) Delete(_ context.Context, id, uid string, grace *int64) error {
	return f.remove(deletion{ID: id, UID: uid, Grace: grace})
}

func (f *fake) Mounted(_ context.Context, id string) (uid string, claims []string, err error) {
	if f.err != nil {
		return "", nil, f.err
	}
	return "uid-of-" + id, f.mounted, nil
}

func (f *fake) DeleteClaim(_ context.Context, name string, force bool) error {
	gone := deletion{ID: name}
	if force {
		gone.Grace = new(int64)
	}
	if name == "absent" {
		return workload.Errorf(workload.NotFound, "volume_not_found", "x")
	}
	return f.remove(gone)
}

func (f *fake) remove(gone deletion) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.write(); err != nil {
		return err
	}
	f.deleted = append(f.deleted, gone)
	return nil
}

func (f *fake) Touch(_ context.Context, id, uid string, at time.Time) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if at.IsZero() {
		return errors.New("the time is missing")
	}
	f.touched = append(f.touched, id+"/"+uid)
	return f.write()
}

func (f *fake) Put(_ context.Context, target workload.Target, path string, archive []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.put = append(f.put, putting{target, path, len(archive)})
	return f.write()
}

func (f *fake) Wrote(pod *unstructured.Unstructured) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shown = append(f.shown, pod)
}

func (f *fake) Deleting(_ context.Context, name string, goingIsEnough bool, del func() error) error {
	before := len(f.deleted)
	if err := del(); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.deleted[before:] {
		last := &f.deleted[before+i]
		if last.Waited != "" { // for by the deletion itself, within this one
			continue
		}
		if name != last.ID && name != workload.PodName(last.ID) {
			return errors.New("it waits for " + name)
		}
		last.Waited = "until it is gone"
		if goingIsEnough {
			last.Waited = "until it is going"
		}
	}
	return nil
}

func (f *fake) Keys() map[string]string { return f.claims }

func (f *fake) Get(id string) (*workload.State, bool) {
	state, ok := f.states[id]
	return state, ok
}

func (f *fake) List(with map[string]string) []*workload.State {
	var found []*workload.State
	for _, s := range f.states {
		matches := true
		for k, v := range with {
			matches = matches && s.Labels[k] == v
		}
		if matches {
			found = append(found, s)
		}
	}
	return found
}

// logBuffer is a log that a test reads.
type logBuffer struct {
	mu  sync.Mutex
	out bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.out.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.out.String()
}

// serve serves the cluster f on loopback and returns a client and the log,
// which is complete once stop was called.
func serve(t *testing.T, f *fake) (client runnerv1.RunnerServiceClient, log *logBuffer, stop func()) {
	t.Helper()
	conn, log, stop := connect(t, f)
	return runnerv1.NewRunnerServiceClient(conn), log, stop
}

func connect(t *testing.T, f *fake) (conn *grpc.ClientConn, log *logBuffer, stop func()) {
	t.Helper()
	return connectToServer(t, NewServer(Parts{Renderer: f, Applier: f, Workloads: f, Volumes: f, Archives: f, MaxArchive: maxArchive}))
}

// connectToServer serves s on loopback.
func connectToServer(t *testing.T, s *Server) (conn *grpc.ClientConn, log *logBuffer, stop func()) {
	t.Helper()
	m, err := metrics.New()
	if err != nil {
		t.Fatal(err)
	}
	return connectTo(t, s, NewOperator(), m.Calls)
}

func connectTo(t *testing.T, s *Server, o *Operator, meter Meter) (conn *grpc.ClientConn, log *logBuffer, stop func()) {
	t.Helper()
	log = &logBuffer{}
	logger := logrus.New()
	logger.SetOutput(log)
	logger.SetLevel(logrus.TraceLevel)
	logger.SetFormatter(&logrus.JSONFormatter{})
	logger.AddHook(LogFields{})
	server, _ := NewGRPC(s, o, meter, logger)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	conn, err = grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		server.GracefulStop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return conn, log, stop
}
