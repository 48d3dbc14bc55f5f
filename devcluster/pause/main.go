// pause is the process of a Pod's sandbox: it collects zombies and sleeps until it is told to stop.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	c := make(chan os.Signal, 8)
	signal.Notify(c, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCHLD)
	for s := range c {
		if s != syscall.SIGCHLD {
			os.Exit(0)
		}
		for {
			var st syscall.WaitStatus
			if p, err := syscall.Wait4(-1, &st, syscall.WNOHANG, nil); p <= 0 || err != nil {
				break
			}
		}
	}
}
