package workload

import (
	"context"
	"time"
)

// Target is a container of a workload.
type Target struct {
	// ID is the workload's. UID is that of its Pod, which tells it from an earlier
	// or later one of the same name.
	ID, UID string
	// Container is the container's name.
	Container string
}

// Stream is one of the two that a process writes.
type Stream int

// The streams.
const (
	Stdout Stream = iota
	Stderr
)

// Command is one to run in a container.
type Command struct {
	Target Target
	// Argv is the command with its arguments.
	Argv []string
	// Dir is the working directory; empty means the container's.
	Dir string
	Env []EnvVar
	// TTY gives it a terminal, whose output is Stdout alone.
	TTY bool
	// Separate keeps Stderr apart from Stdout.
	Separate bool
	// ToLog writes the output into the container's log, too.
	ToLog bool
	// Timeout bounds the time that the command runs, Idle the time in which nothing
	// is read or written; 0 means no bound.
	Timeout, Idle time.Duration
	// Kill has the process and all its children killed when nobody waits for them
	// any more.
	Kill bool
	// Tail is how many bytes of the end of each stream Exit has.
	Tail int
}

// Size is that of a terminal, in characters.
type Size struct{ Columns, Rows uint16 }

// Session is the caller's side of a Command.
type Session interface {
	// Started says that the command runs, under an id that cancels it.
	Started(id string, at time.Time) error
	// Output takes a piece of what the command writes; it may wait for the caller.
	Output(from Stream, data []byte) error
	// Stdin returns the next piece for the command, and io.EOF at the end.
	Stdin(ctx context.Context) ([]byte, error)
	// Size returns the next size of the terminal, the newest if there are several.
	// Its error is that of ctx, or io.EOF if there will be none.
	Size(ctx context.Context) (Size, error)
}

// Exit is how a Command ended.
type Exit struct {
	ID     string
	Reason ExitReason
	// Code is the process's; -1 if it told none.
	Code int32
	// Killed is true if the process and its children were killed, and seen gone.
	Killed bool
	// Stdout and Stderr are the ends of what was written.
	Stdout, Stderr []byte
	At             time.Time
	// Cause says why, if the reason does not say it.
	Cause string
}

// ExitReason is why a Command ended.
type ExitReason int

// The reasons. Completed means that the cluster reported the process's status.
const (
	Completed ExitReason = iota + 1
	TimedOut
	IdledOut
	Cancelled
	RunnerError
)

// LogRequest asks for what a container wrote.
type LogRequest struct {
	Target Target
	// Follow goes on until the container ends.
	Follow bool
	// Tail is the number of lines to begin with; nil means all.
	Tail *int64
	// Since leaves out what is older; zero means nothing.
	Since time.Time
}

// LogPiece is whole lines of a log, or a part of a long one.
type LogPiece struct {
	// Data is as the container wrote it. It is valid until the next piece.
	Data []byte
	// At is the time of the line.
	At time.Time
}

// EventRequest asks for Kubernetes Events of the workloads' namespace.
type EventRequest struct {
	// Since leaves out what is older; zero means nothing.
	Since time.Time
	// Filters are all to be met; a filter is met by one of its values.
	Filters []EventFilter
}

// EventFilter wants a field of an Event, such as involvedObject.name, to have one
// of some values.
type EventFilter struct {
	Field  string
	Values []string
}

// EventRecord is one Event.
type EventRecord struct {
	// JSON is the Event as Kubernetes writes it.
	JSON string
	At   time.Time
}
