package main

import (
	"bytes"
	"crypto/rand"
	"io"
	"net"
	"testing"
)

func listen(t *testing.T) *net.TCPListener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.(*net.TCPListener)
}

// forwarded returns the two ends of a connection through a forwarder.
func forwarded(t *testing.T) (client, server *net.TCPConn) {
	t.Helper()
	front, back := listen(t), listen(t)
	go func() { _ = serveForward(front, back.Addr().String()) }() // ends with the listener
	c, err := net.Dial("tcp", front.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s, err := back.AcceptTCP()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); s.Close() })
	return c.(*net.TCPConn), s
}

// TestForwardHalfClose sends one way, ends that way, and then the other: what an
// exec with stdin does.
func TestForwardHalfClose(t *testing.T) {
	client, server := forwarded(t)
	for _, way := range []struct {
		name     string
		from, to *net.TCPConn
	}{{"to the server", client, server}, {"back, after the client has ended", server, client}} {
		want := make([]byte, 4<<20)
		_, _ = rand.Read(want) // never fails
		go func() {
			if _, err := way.from.Write(want); err != nil {
				t.Errorf("%s: %v", way.name, err)
			}
			if err := way.from.CloseWrite(); err != nil {
				t.Errorf("%s: %v", way.name, err)
			}
		}()
		got, err := io.ReadAll(way.to)
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%s: %d of %d bytes, %v", way.name, len(got), len(want), err)
		}
	}
}

func TestForwardPassesAnAbortOn(t *testing.T) {
	client, server := forwarded(t)
	if err := client.SetLinger(0); err != nil { // Close resets the connection
		t.Fatal(err)
	}
	client.Close()
	if _, err := io.ReadAll(server); err != nil {
		t.Logf("reset: %v", err) // an end or a reset, but not a wait
	}
}

func TestForwardWithoutServer(t *testing.T) {
	front, back := listen(t), listen(t)
	back.Close()
	go func() { _ = serveForward(front, back.Addr().String()) }()
	c, err := net.Dial("tcp", front.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if b, _ := io.ReadAll(c); len(b) > 0 {
		t.Errorf("read %q", b)
	}
}
