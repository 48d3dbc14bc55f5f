//go:build !windows

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// notifyResized tells resized of each change of the terminal's size.
func notifyResized(resized chan<- os.Signal) { signal.Notify(resized, syscall.SIGWINCH) }
