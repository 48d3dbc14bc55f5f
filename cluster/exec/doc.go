// Package exec runs commands in containers.
//
// Kubernetes' own exec has no environment, no working directory, no time limit and
// no way to end a process, and it tells a connection that broke from a process that
// ended well only to those who look. A command is therefore started through a small
// script (wrap.go), which says when the process begins and marks it with a variable
// of its environment. By that mark the process and its children are found again,
// to be killed (kill.go) or to have their terminal resized (resize.go). In an image
// without a shell a command runs bare, and none of that is possible.
//
// An exec ends when the cluster has reported the status of the process; whatever
// else ends it says so (execution.go).
package exec
