package main

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lock makes sure that only one command at a time changes a cluster. It waits
// for the other one.
func lock(s settings) (unlock func(), err error) {
	for {
		if err := os.MkdirAll(s.Dir, 0o755); err != nil {
			return nil, err
		}
		f, err := os.OpenFile(s.path("lock"), os.O_CREATE|os.O_RDWR, 0o644)
		if err != nil {
			return nil, fmt.Errorf("opening the lock: %w", err)
		}
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if errors.Is(err, syscall.EWOULDBLOCK) {
			fmt.Println("waiting for another command on this cluster to end")
			err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		}
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("taking the lock: %w", err)
		}
		mine, err := f.Stat()
		if err != nil {
			f.Close()
			return nil, err
		}
		// `down --purge` may have removed the file while this command waited
		if there, err := os.Stat(s.path("lock")); err == nil && os.SameFile(mine, there) {
			return func() { f.Close() }, nil
		}
		f.Close()
	}
}
