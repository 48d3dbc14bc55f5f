package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"sync"
)

// runForward carries connections of an inherited listener to addr. The listener
// belongs to the host's network, the process to the node's: that is the only
// way between the two.
func runForward(_ context.Context, _ settings, args []string) error {
	if len(args) != 1 {
		return errors.New("usage: forward ADDR, with the listener as file 3")
	}
	inherited := os.NewFile(3, "listener")
	l, err := net.FileListener(inherited)
	if err != nil {
		return fmt.Errorf("taking the listener: %w", err)
	}
	inherited.Close() // l is another handle of it
	return serveForward(l.(*net.TCPListener), args[0])
}

func serveForward(l *net.TCPListener, addr string) error {
	for {
		conn, err := l.AcceptTCP()
		if err != nil {
			return fmt.Errorf("accepting on %s: %w", l.Addr(), err)
		}
		go func() {
			if err := forward(conn, addr); err != nil {
				log.Print(err)
			}
		}()
	}
}

// forward joins one connection with a new one to addr, without a time limit.
func forward(in *net.TCPConn, addr string) error {
	defer in.Close()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	out := c.(*net.TCPConn)
	defer out.Close()
	var both sync.WaitGroup
	both.Go(func() { carry(in, out) })
	both.Go(func() { carry(out, in) })
	both.Wait()
	return nil
}

// carry copies one direction (the kernel does it, by splice). Its end is passed
// on, so that the other direction may go on; its failure ends both.
func carry(from, to *net.TCPConn) {
	if _, err := io.Copy(to, from); err != nil {
		from.Close()
		to.Close()
		return
	}
	_ = to.CloseWrite() // fails only if the other side has gone already
}
