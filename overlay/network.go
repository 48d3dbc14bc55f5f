// Package overlay keeps the runner within reach of its callers on a network that lies
// over the real one: it binds the runner's service there, binds it again when that is
// lost, and ends when the network knows the runner no more. It knows no
// network of a kind; overlay/ziti does.
package overlay

import (
	"context"
	"errors"
	"net"
)

// ErrUnauthorized is what the overlay says to an identity that it does not accept.
// Nothing else is: a network that is out of reach says nothing about an identity.
var ErrUnauthorized = errors.New("the overlay does not accept this identity")

// Network is an overlay, as one identity sees it. Its methods return once ctx ends,
// however slow the network is.
type Network interface {
	// Listen binds the service of the identity.
	Listen(ctx context.Context) (Listener, error)
	// Refresh asks the overlay for what the identity may use, and so whether it still
	// accepts the identity.
	Refresh(ctx context.Context) error
	// Close ends every connection, within seconds.
	Close() error
}

// Listener takes the connections that callers make to the service.
type Listener interface {
	net.Listener
	// Established reports whether a router of the overlay leads callers here. It does
	// not block. A listener may lose every router, and find one again by itself.
	Established() bool
}

// Meter counts how it goes with the overlay.
type Meter interface {
	// Bound counts an attempt to bind the service.
	Bound(result string)
	// Refreshed counts a question whether the identity is still accepted.
	Refreshed(result string)
}

// Results that a Meter is told.
const (
	ResultOK           = "ok"
	ResultUnauthorized = "unauthorized"
	ResultFailed       = "failed"
)

func result(err error) string {
	switch {
	case err == nil:
		return ResultOK
	case errors.Is(err, ErrUnauthorized):
		return ResultUnauthorized
	}
	return ResultFailed
}
