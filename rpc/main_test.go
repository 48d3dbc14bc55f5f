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

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/render"
	"github.com/agynio/k8s-runner/request"
	"github.com/agynio/k8s-runner/workload"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const id = "00000000-0000-4000-8000-00000000000a"

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

	started []*unstructured.Unstructured
	shown   []*unstructured.Unstructured
	deleted []deletion
	touched []string
}

type deletion struct {
	ID     string
	Grace  *int64
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
	pod := &unstructured.Unstructured{Object: map[string]any{}}
	pod.SetName(workload.PodName(spec.ID))
	return spec, &render.Manifests{Pod: pod}, nil
}

func (f *fake) Start(_ context.Context, pod *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.write(); err != nil {
		return nil, err
	}
	f.started = append(f.started, pod)
	return pod, nil
}

func (f *fake) Delete(_ context.Context, id string, grace *int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.write(); err != nil {
		return err
	}
	f.deleted = append(f.deleted, deletion{ID: id, Grace: grace})
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

func (f *fake) Wrote(pod *unstructured.Unstructured) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shown = append(f.shown, pod)
}

func (f *fake) AwaitDeleted(_ context.Context, _ string, goingIsEnough bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	last := &f.deleted[len(f.deleted)-1]
	last.Waited = "until it is gone"
	if goingIsEnough {
		last.Waited = "until it is going"
	}
}

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
	log = &logBuffer{}
	logger := logrus.New()
	logger.SetOutput(log)
	logger.SetLevel(logrus.TraceLevel)
	logger.SetFormatter(&logrus.JSONFormatter{})
	server, _ := NewGRPC(NewServer(f, f, f), logger)
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
