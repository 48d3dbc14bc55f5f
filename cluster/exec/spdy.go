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

	"golang.org/x/sync/errgroup"

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
	// rest is what was not read yet of the last piece, whose buffer is borrowed, and
	// filled is one that several were put into. They are for who reads.
	rest     piece
	borrowed []byte
	filled   []byte
}

// buffers is how many pieces there are at a time: one for each stream that is read,
// and some more, so that not each of them is waited for. They are made when needed.
const buffers = 8

// fullPiece is the size, in bytes, of the largest piece that is read: the runner's
// answers have room for that much. The kubelet's pieces are a little larger.
const fullPiece = 32<<10 - 64

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
	if p.noInput {
		kinds = kinds[:3]
	}
	// Side by side, for each waits for an answer.
	made := make([]httpstream.Stream, len(kinds))
	var all errgroup.Group
	for i, kind := range kinds {
		all.Go(func() (err error) {
			made[i], err = s.conn.CreateStream(http.Header{corev1.StreamType: {kind.name}})
			if err != nil {
				return fmt.Errorf("opening the stream %s: %w", kind.name, err)
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		return err
	}
	for i, kind := range kinds {
		s.streams[kind.channel] = made[i]
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

// read fills a piece with what is there already, so that each is worth a message of
// its own.
func (s *spdyConnection) read() (channel, []byte, error) {
	if len(s.rest.data) == 0 && s.rest.err == nil {
		s.goOn(<-s.pieces)
	}
	from := s.rest.from
	if s.rest.err != nil || len(s.rest.data) >= fullPiece {
		return from, s.take(fullPiece), s.rest.err
	}
	s.filled = s.filled[:0]
	for s.rest.from == from {
		s.filled = append(s.filled, s.take(fullPiece-len(s.filled))...)
		if len(s.filled) == fullPiece {
			break
		}
		select {
		case next := <-s.pieces:
			s.goOn(next)
		default:
			return from, s.filled, nil
		}
	}
	return from, s.filled, nil
}

// goOn has the reading go on with next; after the last one that is the end.
func (s *spdyConnection) goOn(next piece) {
	if s.borrowed != nil {
		s.free <- s.borrowed
	}
	s.rest, s.borrowed = next, next.data[:cap(next.data)]
	if next.data == nil && next.err == nil {
		s.rest.err = io.EOF
	}
}

// take takes up to n bytes of the rest.
func (s *spdyConnection) take(n int) []byte {
	data := s.rest.data[:min(n, len(s.rest.data))]
	s.rest.data = s.rest.data[len(data):]
	return data
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
