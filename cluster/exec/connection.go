package exec

import (
	"context"
	"fmt"
	"net/url"

	corev1 "k8s.io/api/core/v1"
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

// dialer opens connections.
type dialer struct {
	config    *rest.Config
	api       rest.Interface
	namespace string
}

// dial starts argv in a container. WebSockets come first, since they end
// one direction without ending the other; SPDY is for servers, and proxies before
// them, that know no other.
func (d *dialer) dial(ctx context.Context, target workload.Target, argv []string, tty bool) (connection, error) {
	where := d.url(target, argv, tty)
	conn, err := dialWebSocket(ctx, d.config, where)
	if err == nil {
		return conn, nil
	}
	if !httpstream.IsUpgradeFailure(err) && !httpstream.IsHTTPSProxyError(err) || missing(err) {
		return nil, fmt.Errorf("connecting to a container of %s: %w", target.ID, err)
	}
	spdy, spdyErr := dialSPDY(ctx, d.config, where, tty)
	if spdyErr != nil {
		return nil, fmt.Errorf("connecting to a container of %s: %w", target.ID, spdyErr)
	}
	return spdy, nil
}

func (d *dialer) url(target workload.Target, argv []string, tty bool) *url.URL {
	return d.api.Post().Resource("pods").Namespace(d.namespace).Name(workload.PodName(target.ID)).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{
			Container: target.Container, Command: argv, Stdin: true, Stdout: true, Stderr: !tty, TTY: tty,
		}, scheme.ParameterCodec).URL()
}
