package exec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
	httpstreamspdy "k8s.io/streaming/pkg/httpstream/spdy"

	"github.com/agynio/k8s-runner/workload"
)

// spdyConnection has a stream of its own for each channel.
type spdyConnection struct {
	conn    httpstream.Connection
	streams map[channel]httpstream.Stream
	pieces  chan piece
	// free has the buffers that nobody uses.
	free    chan []byte
	done    chan struct{}
	once    sync.Once
	readers sync.WaitGroup
	// borrowed is the buffer of the piece that the caller of read has.
	borrowed []byte
}

// buffers is how many pieces there are at a time: one for each stream that is read,
// and some more, so that not each of them is waited for. They are made when needed.
const buffers = 8

type piece struct {
	from channel
	data []byte
	err  error
}

func (d *dialer) dialSPDY(ctx context.Context, p process) (connection, error) {
	upgrader, transport, err := spdyTransport(d.config)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, d.url(p), http.NoBody)
	if err != nil {
		return nil, err
	}
	conn, _, err := spdy.NegotiateStreaming(spdy.NewUpgraderForStreaming(upgrader), &http.Client{Transport: transport}, request,
		remotecommand.StreamProtocolV5Name, remotecommand.StreamProtocolV4Name)
	if err != nil {
		return nil, err
	}
	s := &spdyConnection{
		conn: conn, streams: map[channel]httpstream.Stream{},
		pieces: make(chan piece, buffers), free: make(chan []byte, buffers), done: make(chan struct{}),
	}
	for range buffers {
		s.free <- nil
	}
	if err := s.open(p); err != nil {
		s.close()
		return nil, err
	}
	for from, stream := range s.streams {
		if from == channelStdin || from == channelResize {
			continue
		}
		s.readers.Go(func() { s.pass(from, stream) })
	}
	go func() {
		s.readers.Wait()
		close(s.pieces)
	}()
	return s, nil
}

// spdyTransport has no pings, as client-go has every five seconds: one that comes when the
// kubelet has closed, while output is still on its way, makes the API server drop it.
// TCP's own keep a silent connection.
func spdyTransport(config *rest.Config) (*httpstreamspdy.SpdyRoundTripper, http.RoundTripper, error) {
	tls, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, nil, err
	}
	proxy := http.ProxyFromEnvironment
	if config.Proxy != nil {
		proxy = config.Proxy
	}
	upgrader, err := httpstreamspdy.NewRoundTripperWithConfig(httpstreamspdy.RoundTripperConfig{TLS: tls, Proxier: proxy})
	if err != nil {
		return nil, nil, err
	}
	transport, err := rest.HTTPWrappersForConfig(config, upgrader)
	return upgrader, transport, err
}

// open makes the streams; the server waits for all of them.
func (s *spdyConnection) open(p process) error {
	kinds := []struct {
		channel channel
		name    string
	}{
		{channelStatus, corev1.StreamTypeError},
		{channelStdout, corev1.StreamTypeStdout},
		{channelStderr, corev1.StreamTypeStderr},
		{channelStdin, corev1.StreamTypeStdin},
	}
	if p.tty {
		kinds[2].channel, kinds[2].name = channelResize, corev1.StreamTypeResize
	}
	if p.input == none {
		kinds = kinds[:3]
	}
	for _, kind := range kinds {
		stream, err := s.conn.CreateStream(http.Header{corev1.StreamType: {kind.name}})
		if err != nil {
			return fmt.Errorf("opening the stream %s: %w", kind.name, err)
		}
		s.streams[kind.channel] = stream
	}
	return s.streams[channelStatus].Close() // in this direction
}

// pass hands on what comes from a stream, and why it ended if that was no end.
func (s *spdyConnection) pass(from channel, stream io.Reader) {
	for {
		var buffer []byte
		select {
		case buffer = <-s.free:
		case <-s.done:
			return
		}
		if buffer == nil {
			buffer = make([]byte, maxPiece)
		}
		n, err := stream.Read(buffer)
		if n == 0 {
			s.free <- buffer
		} else if !s.hand(piece{from: from, data: buffer[:n]}) {
			return
		}
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			s.hand(piece{err: fmt.Errorf("reading from the container: %w", err)})
			return
		}
	}
}

func (s *spdyConnection) hand(p piece) bool {
	select {
	case s.pieces <- p:
		return true
	case <-s.done:
		return false
	}
}

func (s *spdyConnection) read() (channel, []byte, error) {
	if s.borrowed != nil {
		s.free <- s.borrowed
		s.borrowed = nil
	}
	next, ok := <-s.pieces
	if !ok {
		return 0, nil, io.EOF
	}
	if next.data != nil {
		s.borrowed = next.data[:cap(next.data)]
	}
	return next.from, next.data, next.err
}

func (s *spdyConnection) write(data []byte) error { return s.send(channelStdin, data) }

func (s *spdyConnection) closeWrite() error { return s.streams[channelStdin].Close() }

func (s *spdyConnection) resize(size workload.Size) error {
	return s.send(channelResize, encodeSize(size))
}

func (s *spdyConnection) send(to channel, data []byte) error {
	if _, err := s.streams[to].Write(data); err != nil {
		return fmt.Errorf("writing to the container: %w", err)
	}
	return nil
}

func (s *spdyConnection) close() {
	s.once.Do(func() {
		close(s.done)
		_ = s.conn.Close()
	})
	s.readers.Wait()
}
