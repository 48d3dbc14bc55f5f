package exec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	gorilla "github.com/gorilla/websocket"
	"k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/client-go/transport/websocket"

	"github.com/agynio/k8s-runner/workload"
)

const (
	// pingEvery keeps proxies from ending a silent connection.
	pingEvery = 15 * time.Second
	// maxPiece is how much of a stream travels at once, in bytes. A resize waits
	// for no more than that, if the process reads.
	maxPiece = 32 << 10
)

// webSocket is client-go's protocol without its clock: client-go gives up a
// connection whose pong does not come within a minute, and none comes while a
// process does not read its input, or while a slow caller holds up the output. That
// the other side is gone, TCP finds out.
type webSocket struct {
	conn *gorilla.Conn
	// writing is held by who writes.
	writing sync.Mutex
	pinging sync.WaitGroup
	done    chan struct{}
	once    sync.Once
	buffer  []byte
}

func (d *dialer) dialWebSocket(ctx context.Context, p process) (connection, error) {
	transport, holder, err := websocket.RoundTripperFor(d.config)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url(p), http.NoBody)
	if err != nil {
		return nil, err
	}
	conn, err := websocket.Negotiate(transport, holder, request, remotecommand.StreamProtocolV5Name)
	if err != nil {
		return nil, err
	}
	w := &webSocket{conn: conn, done: make(chan struct{}), buffer: make([]byte, maxPiece)}
	w.pinging.Go(w.ping)
	return w, nil
}

func (w *webSocket) ping() {
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for {
		select {
		case <-w.done:
			return
		case <-tick.C:
			// It may wait behind a write, without a limit: one that passes while a
			// frame is half written would break the connection.
			_ = w.conn.WriteControl(gorilla.PingMessage, nil, time.Time{})
		}
	}
}

// read returns whole frames, or parts of long ones.
func (w *webSocket) read() (channel, []byte, error) {
	for {
		_, frame, err := w.conn.NextReader()
		if err != nil {
			return 0, nil, ended(err)
		}
		data, err := w.fill(frame)
		if err != nil {
			return 0, nil, fmt.Errorf("reading from the container: %w", err)
		}
		if len(data) > 1 { // an empty one says that the connection stands
			return channel(data[0]), data[1:], nil
		}
	}
}

// fill reads a frame into the buffer, which grows to the largest that came.
func (w *webSocket) fill(frame io.Reader) ([]byte, error) {
	for n := 0; ; {
		if n == len(w.buffer) {
			w.buffer = append(w.buffer, make([]byte, len(w.buffer))...)
		}
		k, err := frame.Read(w.buffer[n:])
		n += k
		if errors.Is(err, io.EOF) {
			return w.buffer[:n], nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// ended tells the end that was announced from a connection that broke.
func ended(err error) error {
	if gorilla.IsCloseError(err, gorilla.CloseNormalClosure) {
		return io.EOF
	}
	return fmt.Errorf("reading from the container: %w", err)
}

func (w *webSocket) write(data []byte) error {
	for len(data) > 0 {
		n := min(len(data), maxPiece)
		if err := w.send(channelStdin, data[:n]); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

func (w *webSocket) send(to channel, data []byte) error {
	w.writing.Lock()
	defer w.writing.Unlock()
	frame, err := w.conn.NextWriter(gorilla.BinaryMessage)
	if err != nil {
		return fmt.Errorf("writing to the container: %w", err)
	}
	_, err = frame.Write([]byte{byte(to)})
	if err == nil {
		_, err = frame.Write(data)
	}
	if err = errors.Join(err, frame.Close()); err != nil {
		return fmt.Errorf("writing to the container: %w", err)
	}
	return nil
}

func (w *webSocket) closeWrite() error { return w.send(channelClose, []byte{byte(channelStdin)}) }

func (w *webSocket) resize(size workload.Size) error { return w.send(channelResize, encodeSize(size)) }

func (w *webSocket) close() {
	w.once.Do(func() {
		close(w.done)
		_ = w.conn.Close()
	})
	w.pinging.Wait()
}
