// Package ziti is an overlay.Network of OpenZiti. Nobody else knows its SDK.
package ziti

import (
	"context"
	"errors"
	"fmt"
	"time"

	sdk "github.com/openziti/sdk-golang/ziti"
	"github.com/openziti/sdk-golang/ziti/edge"
	"github.com/sirupsen/logrus"

	"github.com/agynio/k8s-runner/overlay"
)

const (
	// leadLimit bounds the wait for the first router that leads to a listener. It is
	// shorter than overlay's limit for an attempt to bind.
	leadLimit = 10 * time.Second
	// routers is how many of them may lead to the service at once.
	routers = 3
	// closeLimit bounds the wait for what the SDK is busy with.
	closeLimit = 2 * time.Second
)

// Options are what a Network is made of.
type Options struct {
	// Identity is the JSON of an identity, as an enrolment answers it.
	Identity []byte
	// Service is the name of the service to bind.
	Service string
	// Log gets the SDK's lines, of every Network of the process.
	Log *logrus.Logger
}

// Network is OpenZiti, as one identity sees it.
type Network struct {
	client  client
	service string
	// turn holds one element while the SDK is asked something. What it is asked cannot be
	// called off, and takes hours in the worst case; so nothing is asked beside it.
	turn chan struct{}
}

// client is what is used of the SDK's Context.
type client interface {
	RefreshServices() error
	ListenWithOptions(service string, options *sdk.ListenOptions) (edge.Listener, error)
	Close()
}

// New reads an identity. It asks the overlay nothing yet.
func New(o Options) (*Network, error) {
	config, err := read(o.Identity)
	if err != nil {
		return nil, fmt.Errorf("reading the overlay identity: %w", err)
	}
	forward(o.Log)
	made, err := sdk.NewContext(config)
	if err != nil {
		return nil, judged("making a client of the overlay", err)
	}
	impl, ok := made.(*sdk.ContextImpl)
	if !ok {
		made.Close()
		return nil, fmt.Errorf("making a client of the overlay: a %T is of an unknown kind", made)
	}
	return newNetwork(patient{impl}, o.Service), nil
}

// patient logs in only after the SDK has asked the controller for its version. That
// begins with the client, beside everything else; to log in meanwhile changes the TLS
// settings under it, which is a data race.
type patient struct{ *sdk.ContextImpl }

// RefreshServices is that of the SDK.
func (p patient) RefreshServices() error {
	p.CtrlClt.API.ControllerSupportsOidc() // waits for the version
	return p.ContextImpl.RefreshServices()
}

func newNetwork(c client, service string) *Network {
	return &Network{client: c, service: service, turn: make(chan struct{}, 1)}
}

// Refresh lists the services that the identity may use.
func (n *Network) Refresh(ctx context.Context) error {
	return n.ask(ctx, "listing the services of the overlay", question{put: n.client.RefreshServices})
}

// Listen binds the service, and waits until a router leads to it.
func (n *Network) Listen(ctx context.Context) (overlay.Listener, error) {
	var bound edge.Listener
	err := n.ask(ctx, "binding the overlay service "+n.service, question{
		put: func() (err error) {
			// The policy of a service that was just made may be younger than the
			// SDK's list of services.
			if err := n.client.RefreshServices(); err != nil {
				return err
			}
			bound, err = n.client.ListenWithOptions(n.service, &sdk.ListenOptions{
				ConnectTimeout: leadLimit, MaxTerminators: routers, WaitForNEstablishedListeners: 1,
			})
			return err
		},
		late: func() {
			if bound != nil {
				bound.Close() //nolint:errcheck,gosec // nobody has used it
			}
		},
	})
	if err != nil {
		return nil, err
	}
	led, ok := bound.(led)
	if !ok {
		bound.Close() //nolint:errcheck,gosec // nobody has used it
		return nil, fmt.Errorf("binding the overlay service %s: a %T does not tell how many routers lead to it", n.service, bound)
	}
	return listener{led}, nil
}

// led is a listener of the SDK that several routers may lead to.
type led interface {
	edge.Listener
	// GetEstablishedCount counts those that do.
	GetEstablishedCount() uint
}

type listener struct{ led }

// Established is that of an overlay.Listener.
func (l listener) Established() bool { return l.GetEstablishedCount() > 0 }

// question is something to ask the SDK.
type question struct {
	put func() error
	// late clears away an answer that nobody waits for any more; it may be nil.
	late func()
}

// ask asks the SDK until ctx ends.
func (n *Network) ask(ctx context.Context, doing string, q question) error {
	select {
	case n.turn <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("%s: an earlier question has no answer yet: %w", doing, ctx.Err())
	}
	answer, left := make(chan error), make(chan struct{})
	defer close(left)
	go func() {
		defer func() { <-n.turn }()
		err := q.put()
		select {
		case answer <- err:
		case <-left:
			if q.late != nil {
				q.late()
			}
		}
	}()
	select {
	case err := <-answer:
		return judged(doing, err)
	case <-ctx.Done():
		return fmt.Errorf("%s: the overlay has not answered: %w", doing, ctx.Err())
	}
}

// Close closes every connection.
func (n *Network) Close() error {
	n.client.Close()
	select {
	case n.turn <- struct{}{}: // and nothing is asked any more
		return nil
	case <-time.After(closeLimit):
		return errors.New("the SDK is still busy; it is left alone")
	}
}
