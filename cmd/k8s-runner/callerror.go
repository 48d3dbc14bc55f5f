package main

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/agynio/k8s-runner/rpc"
)

// callError is the failure of a call, in words for the user of a client.
type callError struct {
	status  *status.Status
	to      endpoint
	timeout time.Duration
	// header is that of the answer, as far as there was one.
	header metadata.MD
}

// GRPCStatus lets status.Code see the code.
func (e *callError) GRPCStatus() *status.Status { return e.status }

// Error tells what the runner said or, where there was no runner to say
// anything, what to do about it.
func (e *callError) Error() string {
	info, bad, retry := e.details()
	text := e.status.Message() // token: message
	if info == nil {
		text = e.withoutRunner()
	}
	if id := e.header.Get(rpc.RequestIDHeader); len(id) > 0 && e.status.Code() == codes.Internal {
		text += fmt.Sprintf(" (request_id %s)", id[0])
	}
	if bad != nil {
		text = "the request is invalid:\n" + faults(bad)
	}
	if retry != nil {
		text += fmt.Sprintf("; try again in %s", retry.GetRetryDelay().AsDuration())
	}
	return text
}

func (e *callError) details() (info *errdetails.ErrorInfo, bad *errdetails.BadRequest, retry *errdetails.RetryInfo) {
	for _, detail := range e.status.Details() {
		switch d := detail.(type) {
		case *errdetails.ErrorInfo:
			info = d
		case *errdetails.BadRequest:
			bad = d
		case *errdetails.RetryInfo:
			retry = d
		}
	}
	return info, bad, retry
}

// withoutRunner explains what the runner did not say itself.
func (e *callError) withoutRunner() string {
	message := e.status.Message()
	switch e.status.Code() {
	case codes.Unavailable:
		if advice := e.to.advice(message); advice != "" {
			return fmt.Sprintf("no connection to %s: %s\n%s", e.to.address, lastWords(message), advice)
		}
		// Of gRPC's words only the cause at their end is for people.
		if i := strings.LastIndex(message, "dial "); i >= 0 {
			message = strings.TrimSuffix(message[i:], `"`)
		}
		return fmt.Sprintf("no runner answers at %s: %s\nStart one with 'k8s-runner serve', or say where it is with --address or %s.",
			e.to.address, message, addressVariable)
	case codes.DeadlineExceeded:
		return fmt.Sprintf("no answer from %s within %s (--timeout)", e.to.address, e.timeout)
	case codes.Canceled:
		return "interrupted"
	case codes.Unimplemented:
		return fmt.Sprintf("the server at %s is no runner, or one that lacks this call: %s", e.to.address, message)
	}
	return fmt.Sprintf("%s: %s", e.status.Code(), message)
}

// lastWords are the cause at the end of gRPC's words.
func lastWords(message string) string {
	for _, before := range []string{"handshake failed: ", "server preface: ", `desc = "`} {
		if i := strings.LastIndex(message, before); i >= 0 {
			message = strings.TrimSuffix(message[i+len(before):], `"`)
		}
	}
	return strings.ReplaceAll(message, `\"`, `"`)
}

// faults lists the fields of a request that are wrong.
func faults(bad *errdetails.BadRequest) string {
	var rows [][]string
	for _, v := range bad.GetFieldViolations() {
		rows = append(rows, []string{v.GetField(), strings.ToLower(v.GetReason()), v.GetDescription()})
	}
	return faultTable(rows)
}

// faultTable shows a field, a token and a message a line.
func faultTable(rows [][]string) string {
	rows = append([][]string{{"FIELD", "ERROR", "MESSAGE"}}, rows...)
	for _, row := range rows {
		row[0] = "  " + row[0]
	}
	return strings.TrimRight(table(rows...), "\n")
}
