package exec

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/agynio/k8s-runner/workload"
)

// connection is the way to a process: its streams, and the status at its end.
type connection interface {
	// read returns the next piece of a channel, valid until the next call. Its
	// error is io.EOF once all are at their end. It is for one goroutine.
	read() (channel, []byte, error)
	// write gives the process a piece of its standard input. It waits while the
	// process does not read, until the connection is closed.
	write(data []byte) error
	// closeWrite ends the process's standard input.
	closeWrite() error
	// resize changes the terminal. It waits behind what is being written.
	resize(size workload.Size) error
	// close ends everything that waits; the process goes on.
	close()
}

// channel is what a piece belongs to, by the numbers of Kubernetes' protocols
// (k8s.io/apimachinery/pkg/util/remotecommand).
type channel byte

const (
	channelStdin channel = iota
	channelStdout
	channelStderr
	channelStatus
	channelResize
	channelClose channel = 255
)

// process is what is started in a container.
type process struct {
	target workload.Target
	argv   []string
	tty    bool
	// noInput: it gets no standard input.
	noInput bool
}

// dialer opens connections.
type dialer struct {
	config    *rest.Config
	api       rest.Interface
	namespace string
}

// dial starts argv in a container, over SPDY or over WebSockets. Each is for servers,
// and proxies before them, that know no other one. SPDY comes first, for the API server
// hands it on as it is, while it translates each frame of a WebSocket; but for
// terminals, which are silent for long, and whose pings no proxy takes for silence.
func (d *dialer) dial(ctx context.Context, p process) (connection, error) {
	first, second := d.dialSPDY, d.dialWebSocket
	if p.tty {
		first, second = second, first
	}
	conn, err := first(ctx, p)
	if err != nil && noUpgrade(err) && !missing(err) {
		var other error
		if conn, other = second(ctx, p); other == nil {
			return conn, nil
		}
		err = errors.Join(other, err)
	}
	if err != nil {
		return nil, fmt.Errorf("connecting to a container of %s: %w", p.target.ID, err)
	}
	return conn, nil
}

// noUpgrade reports whether err may be that of somebody on the way who does not know
// the protocol, or of the API server if he left it out of the request. Nothing was
// started then.
func noUpgrade(err error) bool {
	return apierrors.IsBadRequest(err) || httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err) ||
		strings.HasPrefix(err.Error(), notUpgraded)
}

func (d *dialer) url(p process) string {
	return d.api.Post().Resource("pods").Namespace(d.namespace).Name(workload.PodName(p.target.ID)).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{
			Container: p.target.Container, Command: p.argv, Stdin: !p.noInput, Stdout: true, Stderr: !p.tty, TTY: p.tty,
		}, scheme.ParameterCodec).URL().String()
}
