package main

import (
	"slices"
	"sync"

	"github.com/sirupsen/logrus"
	"google.golang.org/protobuf/types/known/timestamppb"

	k8srunnerv1 "github.com/agynio/k8s-runner/proto/k8srunner/v1"
)

const (
	// errorsKept is how many lines of the log are kept for who asks for the status.
	errorsKept = 10
	// errorLength bounds the cause that is shown of one, in bytes.
	errorLength = 300
)

// lastErrors keeps the last warnings and errors of a log.
type lastErrors struct {
	mu    sync.Mutex
	lines []*k8srunnerv1.LoggedError
}

func newLastErrors() *lastErrors { return &lastErrors{} }

// Levels is logrus'.
func (l *lastErrors) Levels() []logrus.Level {
	return []logrus.Level{logrus.PanicLevel, logrus.FatalLevel, logrus.ErrorLevel, logrus.WarnLevel}
}

// Fire is logrus'.
func (l *lastErrors) Fire(entry *logrus.Entry) error {
	message := entry.Message
	if err, ok := entry.Data[logrus.ErrorKey].(error); ok {
		cause := err.Error()
		if len(cause) > errorLength {
			cause = cause[:errorLength] + "…"
		}
		message += ": " + cause
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines) == errorsKept {
		l.lines = l.lines[1:]
	}
	l.lines = append(l.lines, &k8srunnerv1.LoggedError{
		At: timestamppb.New(entry.Time), Level: entry.Level.String(), Message: printable(message),
	})
	return nil
}

func (l *lastErrors) all() []*k8srunnerv1.LoggedError {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}
