package exec

import (
	"bytes"
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/agynio/k8s-runner/workload"
)

// logScript writes what it reads into the container's log: the standard output, or
// error, of the container's first process, by its number $1. The shell keeps its
// own output open, with which the input would end (as in wrap.go).
const logScript = `exec 3>>"/proc/1/fd/$1" || exit; echo open; cat >&3; exit`

// logLimit bounds the wait for the last lines to be in the log.
const logLimit = time.Second

// logCopy copies the output of a command into the container's log. Without one,
// nil, nothing is copied.
type logCopy struct {
	// log is the runner's, for lines about the execution.
	log    *logrus.Entry
	conns  [2]connection
	broken [2]bool
}

// openLog opens the log for what the command writes.
func (e *Executor) openLog(ctx context.Context, execution string, c *workload.Command) (*logCopy, error) {
	l := &logCopy{log: e.log.WithField("execution", execution)}
	for stream, fd := range [...]string{"1", "2"} {
		if stream == int(workload.Stderr) && (c.TTY || !c.Separate) {
			break
		}
		conn, err := e.connect(ctx, process{target: c.Target, argv: []string{shell, "-c", logScript, "sh", fd}})
		if err == nil {
			l.conns[stream] = conn
			err = awaitOpen(ctx, conn)
		}
		if err != nil {
			l.close()
			return nil, err
		}
	}
	return l, nil
}

// awaitOpen waits until the log is open.
func awaitOpen(ctx context.Context, conn connection) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	stop := context.AfterFunc(ctx, conn.close)
	defer stop()
	from, data, err := conn.read()
	if err == nil && from == channelStdout && bytes.Equal(data, []byte("open\n")) {
		return nil
	}
	return notStarted(workload.FailedPrecondition,
		"log_to_pid1 cannot write into the container's log: it needs a shell and cat in the image, and a first process of the same user").Because(err)
}

// copy writes into the log. If it cannot any more, that is logged once.
func (l *logCopy) copy(stream workload.Stream, data []byte) {
	if l == nil || l.conns[stream] == nil || l.broken[stream] {
		return
	}
	if err := l.conns[stream].write(data); err != nil {
		l.broken[stream] = true
		l.log.WithError(err).Warn("the output of a command is not copied into the container's log any more")
	}
}

// cut ends what waits for the log.
func (l *logCopy) cut() {
	if l == nil {
		return
	}
	for _, conn := range l.conns {
		if conn != nil {
			conn.close()
		}
	}
}

// close waits until all is in the log.
func (l *logCopy) close() {
	if l == nil {
		return
	}
	for _, conn := range l.conns {
		if conn == nil {
			continue
		}
		_ = conn.closeWrite() // if this fails the connection broke, which read sees
		timer := time.AfterFunc(logLimit, conn.close)
		for {
			if from, _, err := conn.read(); err != nil || from == channelStatus {
				break
			}
		}
		timer.Stop()
		conn.close()
	}
}
