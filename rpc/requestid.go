package rpc

import (
	"context"
	"sync"

	"github.com/google/uuid"
	middleware "github.com/grpc-ecosystem/go-grpc-middleware/v2"
	"github.com/sirupsen/logrus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// RequestIDHeader carries the id of a call: a caller may give it one, and finds in the
// answer which one it has.
const RequestIDHeader = "x-request-id"

// maxRequestID bounds the ids that callers give, in bytes.
const maxRequestID = 128

// notes are what lines of the log say of the call that they belong to.
type notes struct {
	id string

	mu sync.Mutex
	// exec is the id that the caller of Exec gave, execution that of the command.
	exec, execution string
}

type notesKey struct{}

// notesOf returns those of the call of ctx, or some that nobody reads.
func notesOf(ctx context.Context) *notes {
	if n, ok := ctx.Value(notesKey{}).(*notes); ok {
		return n
	}
	return &notes{}
}

// asks notes the id that an ExecStartRequest has.
func (n *notes) asks(exec string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if isRequestID(exec) {
		n.exec = exec
	}
}

// runs notes which command the call has started.
func (n *notes) runs(execution string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.execution = execution
}

// LogFields is a hook of the log: it gives each line with the context of a call the
// call's request_id and, of Exec, the caller's exec_request_id and the execution.
type LogFields struct{}

// Levels is logrus'.
func (LogFields) Levels() []logrus.Level { return logrus.AllLevels }

// Fire is logrus'.
func (LogFields) Fire(entry *logrus.Entry) error {
	if entry.Context == nil {
		return nil
	}
	n := notesOf(entry.Context)
	n.mu.Lock()
	defer n.mu.Unlock()
	for name, value := range map[string]string{"request_id": n.id, "exec_request_id": n.exec, "execution": n.execution} {
		if value != "" {
			entry.Data[name] = value
		}
	}
	return nil
}

// identify gives the call of ctx its id, and returns the header that tells it.
func identify(ctx context.Context) (context.Context, metadata.MD) {
	n := &notes{}
	if given := metadata.ValueFromIncomingContext(ctx, RequestIDHeader); len(given) > 0 && isRequestID(given[0]) {
		n.id = given[0]
	} else {
		n.id = uuid.NewString()
	}
	return context.WithValue(ctx, notesKey{}, n), metadata.Pairs(RequestIDHeader, n.id)
}

// isRequestID reports whether s is printable ASCII and short: it goes into the log
// and into a header.
func isRequestID(s string) bool {
	return s != "" && len(s) <= maxRequestID && s == printable(s)
}

func identifyUnary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	ctx, header := identify(ctx)
	if err := grpc.SetHeader(ctx, header); err != nil {
		return nil, err
	}
	return handler(ctx, req)
}

func identifyStream(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	ctx, header := identify(stream.Context())
	if err := stream.SetHeader(header); err != nil {
		return err
	}
	identified := middleware.WrapServerStream(stream)
	identified.WrappedContext = ctx
	return handler(srv, identified)
}
