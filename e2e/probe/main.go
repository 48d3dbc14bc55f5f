// Command probe shows what a network lets through: it answers on ports, and asks addresses.
package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"
)

// patience is how long an answer may take. What is refused on this machine is so at once.
const patience = 2 * time.Second

const usage = `usage: probe serve ADDRESS...           echo on TCP and UDP
       probe ask NETWORK=ADDRESS...    a line each: what was asked, and open or shut
       probe pipe ADDRESS              standard input and output, over TCP`

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
	var err error
	switch os.Args[1] {
	case "serve":
		err = serve(os.Args[2:])
	case "pipe":
		err = pipe(os.Args[2])
	default:
		err = ask(os.Stdout, os.Args[2:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(1)
	}
}

// pipe carries a connection until the other side ends it.
func pipe(address string) error {
	conn, err := net.DialTimeout("tcp", address, patience) //nolint:gosec // that is what it is for
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(conn, os.Stdin)
		_ = conn.Close() // whoever wrote is gone
	}()
	_, err = io.Copy(os.Stdout, conn)
	return err
}

// ask asks all targets at once, and prints what became of them in their order.
func ask(w io.Writer, targets []string) error {
	answers := make([]string, len(targets))
	var asking sync.WaitGroup
	for i, target := range targets {
		asking.Go(func() {
			answers[i] = "open"
			if err := reach(target); err != nil {
				answers[i] = "shut"
			}
		})
	}
	asking.Wait()
	for i, target := range targets {
		if _, err := fmt.Fprintln(w, target, answers[i]); err != nil {
			return err
		}
	}
	return nil
}

// reach wants a connection, or of UDP an answer.
func reach(target string) error {
	network, address, _ := strings.Cut(target, "=")
	conn, err := net.DialTimeout(network, address, patience) //nolint:gosec // that is what it is for
	if err != nil || network == "tcp" {
		return err
	}
	defer conn.Close() //nolint:errcheck // it ends with the process
	if _, err := conn.Write([]byte("?")); err != nil {
		return err
	}
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 1))
	return err
}

// serve answers on all addresses until one fails.
func serve(addresses []string) error {
	failed := make(chan error)
	for _, address := range addresses {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			return err
		}
		packets, err := net.ListenPacket("udp", address)
		if err != nil {
			return err
		}
		go func() { failed <- echo(listener) }()
		go func() { failed <- echoPackets(packets) }()
	}
	return <-failed
}

func echo(listener net.Listener) error {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		go func() {
			_, _ = io.Copy(conn, conn)
			_ = conn.Close()
		}()
	}
}

func echoPackets(conn net.PacketConn) error {
	buffer := make([]byte, 1500)
	for {
		n, from, err := conn.ReadFrom(buffer)
		if err != nil {
			return err
		}
		if _, err := conn.WriteTo(buffer[:n], from); err != nil {
			return err
		}
	}
}
