package exec

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strings"
	"time"

	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/agynio/k8s-runner/cluster/again"
	"github.com/agynio/k8s-runner/workload"
)

const (
	// sizeLimit bounds the wait for the first size of a terminal: a caller sends it
	// right after the start, if at all.
	sizeLimit = 100 * time.Millisecond
	// firstRetry and lastRetry are the pauses between tries to connect.
	firstRetry = 50 * time.Millisecond
	lastRetry  = time.Second
)

// open starts the command, under its wrapper if the image can. It returns the output
// that it has read.
func (x *execution) open(ctx context.Context) ([]early, error) {
	if x.command.ToLog {
		logs, err := x.executor.openLog(ctx, x.id, x.command)
		if err != nil {
			return nil, err
		}
		x.logs = logs
	}
	var size *workload.Size
	if x.command.TTY {
		size = x.firstSize(ctx)
	} else {
		x.input = x.firstInput(ctx)
	}
	output, err := x.openWrapped(ctx, size)
	if err == nil {
		if err = x.begin(); err != nil {
			err = x.callerGone(err)
		}
	}
	if errors.Is(err, errNoShell) {
		output, err = nil, x.openBare(ctx)
	}
	if err != nil {
		x.logs.close()
		if x.conn != nil {
			x.conn.close()
		}
		if x.command.Kill && x.conn != nil && ctx.Err() != nil { // it may have begun, unseen
			x.executor.kill(context.WithoutCancel(ctx), x)
		}
		return nil, err
	}
	if size != nil {
		_ = x.conn.resize(*size) // if this fails the connection broke, which the reader sees
	}
	return output, nil
}

// firstSize is the size that the terminal begins with. Without one it would have
// none, and programs do not expect that.
func (x *execution) firstSize(ctx context.Context) *workload.Size {
	ctx, cancel := context.WithTimeout(ctx, sizeLimit)
	defer cancel()
	size, err := x.session.Size(ctx)
	if err != nil || size.Columns == 0 || size.Rows == 0 {
		return &workload.Size{Columns: 80, Rows: 24}
	}
	return &size
}

// input is a piece of standard input, or its end, that was taken from the session.
type input struct {
	data []byte
	err  error
}

// inputLimit bounds the wait for the first input, which may say that there is none: a
// process without one ends sooner.
const inputLimit = 2 * time.Millisecond

// firstInput is what the caller sent right after the start, nil if nothing.
func (x *execution) firstInput(ctx context.Context) *input {
	ctx, cancel := context.WithTimeout(ctx, inputLimit)
	defer cancel()
	data, err := x.session.Stdin(ctx)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil
	}
	return &input{data, err}
}

func (x *execution) process(argv []string) process {
	return process{target: x.command.Target, argv: argv, tty: x.command.TTY, noInput: x.input != nil && x.input.err != nil}
}

// errNoShell: the image has not what the wrapper needs.
var errNoShell = errors.New("the image has no shell")

func (x *execution) openWrapped(ctx context.Context, size *workload.Size) ([]early, error) {
	token := uuid.NewString()
	x.notices, x.at = newNotices(token), time.Now()
	conn, err := x.executor.connect(ctx, x.process(wrapped(x.id, token, x.command, size)))
	if err != nil {
		return nil, err
	}
	x.conn = conn
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, &ending{cause: "it did not begin in time"})
	defer cancel()
	stop := context.AfterFunc(ctx, conn.close)
	defer stop()
	output, err := x.awaitBegins()
	if err != nil && ctx.Err() != nil {
		return nil, notStarted(workload.Unavailable, "%s", endingOf(ctx, x.command).cause)
	}
	return output, err
}

// awaitBegins reads until the wrapper says that the command begins.
func (x *execution) awaitBegins() (output []early, err error) {
	var complaint, status []byte
	for {
		from, data, err := x.conn.read()
		switch {
		case err != nil && json.Valid(status):
			return nil, x.neverBegan(status, complaint)
		case err != nil:
			return nil, notStarted(workload.Unavailable, "the connection to the container ended while the command began").Because(err)
		case from == channelStatus:
			if status = append(status, data...); json.Valid(status) {
				return nil, x.neverBegan(status, complaint)
			}
			continue
		case from == channelStderr:
			complaint = append(complaint, data...)
			continue
		}
		before, notice, after := x.notices.next(data)
		complaint = append(complaint, before...)
		switch notice {
		case "":
			continue
		case noticeNoEnv:
			return nil, x.withoutShell()
		case noticeNoDir:
			return nil, notStarted(workload.InvalidArgument, "the working directory %q is not there", x.command.Dir)
		}
		if len(complaint) > 0 { // of the image's shell
			output = append(output, early{channelStderr, complaint})
		}
		return append(output, early{channelStdout, bytes.Clone(after)}), nil
	}
}

// neverBegan says why the wrapper ended before the command began.
func (x *execution) neverBegan(status, complaint []byte) error {
	code, err := decodeStatus(status)
	var refused *refusal
	switch {
	case errors.As(err, &refused) && noSuchFile(refused.message):
		return x.withoutShell()
	case err != nil:
		return notStarted(workload.FailedPrecondition, "%s", err.Error())
	}
	return notStarted(workload.FailedPrecondition, "the shell of the image ended with code %d: %s", code, complaint)
}

// withoutShell says whether the command can do without what the image lacks.
func (x *execution) withoutShell() error {
	c := x.command
	if len(c.Env) > 0 || c.Dir != "" || c.Argv[0] == shell {
		return notStarted(workload.FailedPrecondition, "the image has no %s or no env, which a shell command, env and workdir need", shell)
	}
	return errNoShell
}

// noSuchFile knows what container runtimes say of a program that is not there.
func noSuchFile(message string) bool {
	return strings.Contains(message, "no such file") || strings.Contains(message, "not found") || strings.Contains(message, shell)
}

// openBare starts the command as it is. That it began is known when it writes or
// ends, or is not refused for a while.
func (x *execution) openBare(ctx context.Context) error {
	x.conn.close()
	conn, err := x.executor.connect(ctx, x.process(x.command.Argv))
	if err != nil {
		return err
	}
	x.conn, x.bare, x.notices = conn, true, nil
	return nil
}

// connect connects to a new process. Where nothing can have begun it tries again,
// for a while.
func (e *Executor) connect(ctx context.Context, p process) (connection, error) {
	limit := time.Now().Add(startLimit)
	for pause := firstRetry; ; pause = min(2*pause, lastRetry) {
		conn, err := e.dialer.dial(ctx, p)
		if err == nil {
			return conn, nil
		}
		if !passing(err) || time.Now().After(limit) {
			return nil, explain(err)
		}
		if again.Wait(ctx, pause, nil) != nil {
			return nil, explain(err)
		}
	}
}

// passing reports whether the command was refused before it was begun, by something
// that passes: an API server or a kubelet that is not there, or a container that the
// kubelet does not know yet.
func passing(err error) bool {
	var dialing *net.OpError
	return errors.As(err, &dialing) && dialing.Op == "dial" || apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) ||
		strings.Contains(err.Error(), "container not found") || strings.Contains(err.Error(), "502 Bad Gateway") || strings.Contains(err.Error(), "503 Service Unavailable")
}

// explain says why there is no connection. What others said stays in the log.
func explain(err error) error {
	switch {
	case missing(err):
		return notStarted(workload.NotFound, "the Pod is gone").Because(err)
	case denied(err):
		return notStarted(workload.PermissionDenied, "the runner's Role does not allow to create and get pods/exec").Because(err)
	}
	return notStarted(workload.Unavailable, "the cluster gives no connection to the container").Because(err).Retry(retrySoon)
}

// denied reports whether the Role does not allow it. client-go has no type for what
// the API server says in place of an upgrade.
func denied(err error) bool {
	return apierrors.IsForbidden(err) || strings.Contains(err.Error(), "is forbidden: User ")
}
