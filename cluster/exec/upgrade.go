package exec

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/client-go/rest"
	"k8s.io/streaming/pkg/httpstream"
)

const (
	spdyProtocol = "SPDY/3.1"
	// handshakeLimit bounds the time for TLS.
	handshakeLimit = 10 * time.Second
	// maxRefusal bounds what is read of a refusal, in bytes.
	maxRefusal = 64 << 10
)

// dialSPDY connects to a new process over SPDY. An API server that is silent is given
// up after startLimit.
func (d *dialer) dialSPDY(ctx context.Context, p process) (connection, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, errSilent)
	defer cancel()
	conn, err := d.upgrade(ctx, p)
	if err != nil {
		return nil, err
	}
	s := newSPDY(conn)
	if err := s.begin(ctx, p); err != nil {
		s.close()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	return s, nil
}

var errSilent = fmt.Errorf("the API server did not answer within %s", startLimit)

// upgrade asks for a process, and returns the connection once it is one of SPDY.
func (d *dialer) upgrade(ctx context.Context, p process) (io.ReadWriteCloser, error) {
	transport, err := upgradeTransport(d.config)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, d.url(p), http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set(httpstream.HeaderConnection, httpstream.HeaderUpgrade)
	request.Header.Set(httpstream.HeaderUpgrade, spdyProtocol)
	for _, version := range []string{remotecommand.StreamProtocolV5Name, remotecommand.StreamProtocolV4Name} {
		request.Header.Add(httpstream.HeaderProtocolVersion, version)
	}
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if conn, ok := answer.Body.(io.ReadWriteCloser); ok && strings.EqualFold(answer.Header.Get(httpstream.HeaderUpgrade), spdyProtocol) {
		return conn, nil
	}
	defer func() { _ = answer.Body.Close() }()
	return nil, refused(answer)
}

// upgradeTransport is for one connection, with what is now in the files of config.
func upgradeTransport(config *rest.Config) (http.RoundTripper, error) {
	tls, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{
		TLSClientConfig: tls, Proxy: http.ProxyFromEnvironment, DialContext: config.Dial,
		TLSHandshakeTimeout: handshakeLimit, DisableKeepAlives: true,
		Protocols: &http.Protocols{},
	}
	transport.Protocols.SetHTTP1(true)
	if config.Proxy != nil {
		transport.Proxy = config.Proxy
	}
	return rest.HTTPWrappersForConfig(config, transport)
}

// notUpgraded begins the error of an answer that is not the API server's.
const notUpgraded = "unable to upgrade connection"

// refused is the error of an answer that is no upgrade, in the form that client-go
// gives it.
func refused(answer *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxRefusal))
	if err != nil {
		return fmt.Errorf("reading why the connection is refused: %w", err)
	}
	var status metav1.Status
	if json.Unmarshal(text, &status) == nil && status.Kind == "Status" {
		return &apierrors.StatusError{ErrStatus: status}
	}
	return fmt.Errorf(notUpgraded+": %s: %s", answer.Status, strings.TrimSpace(string(text)))
}
