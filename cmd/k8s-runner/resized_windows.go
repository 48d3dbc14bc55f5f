package main

import "os"

// notifyResized never tells: Windows has no such signal.
func notifyResized(chan<- os.Signal) {}
