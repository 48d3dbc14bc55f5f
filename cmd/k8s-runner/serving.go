package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/agynio/k8s-runner/overlay"
	"github.com/agynio/k8s-runner/overlay/ziti"
	"github.com/agynio/k8s-runner/reporter"
	"github.com/agynio/k8s-runner/rpc"
)

// shutdownLimit bounds the wait for calls in flight when the service ends.
const shutdownLimit = 10 * time.Second

// serveCalls serves the API once there is something to answer from, and the platform
// knows of it, until ctx ends.
func (s *service) serveCalls(ctx context.Context, listener net.Listener) error {
	identity, err := s.begin(ctx)
	if err != nil {
		return err
	}
	api := rpc.NewServer(rpc.Parts{
		Renderer: s.operator, Applier: s.writer, Workloads: s.pods, Volumes: s.claims,
		Executor: s.commands, Logs: s.logs, Events: s.events, StreamsPerWorkload: s.config.Streams.PerWorkload,
		Archives: newPutter(s.commands), MaxArchive: s.config.Archive.Bytes(),
		Starts: s.starts(),
	})
	var more []grpc.ServerOption
	if !s.config.Ziti.Enabled { // the overlay secures its own
		more = append(more, s.secured...)
	}
	if spans := s.traces.Calls(); spans != nil {
		more = append(more, grpc.StatsHandler(spans))
	}
	server, healthy := rpc.NewGRPC(api, rpc.NewOperator(s.parts()...), s.metrics.Calls, s.log, more...)
	if s.platform != nil {
		defer s.platform.report(ctx)() // until the last call has ended
	}
	serving, ctx := errgroup.WithContext(ctx)
	log := s.log.WithFields(logrus.Fields{"address": listener.Addr().String(), "namespace": s.config.Kube.Namespace})
	if !s.config.Ziti.Enabled {
		log.Info("serving")
		serving.Go(func() error {
			return s.serveUntil(ctx, api, healthy, func() error { return server.Serve(listener) }, server)
		})
		return serving.Wait()
	}
	s.ready.lacks(partOverlay, "the service is not bound yet")
	door := rpc.NewDoor(api, healthy, s.secured...)
	log.Info("answering health and Ready; all else is on the overlay")
	serving.Go(func() error {
		return s.serveUntil(ctx, api, healthy, func() error { return door.Serve(listener) }, door, server)
	})
	serving.Go(func() error { return s.serveOverlay(ctx, identity, server) })
	return serving.Wait()
}

// begin returns once there is something to answer from and the platform, if there is
// one, knows what is offered. The enrolment is nil without a platform.
func (s *service) begin(ctx context.Context) (identity *reporter.Enrolment, err error) {
	all, ctx := errgroup.WithContext(ctx)
	for part, wait := range map[string]func(context.Context) error{
		partPods: s.pods.WaitForSync, partClaims: s.claims.WaitForSync, partTemplates: s.operator.WaitForSync,
	} {
		all.Go(func() error {
			if err := wait(ctx); err != nil {
				return err
			}
			s.ready.has(part)
			return nil
		})
	}
	if s.platform != nil {
		s.ready.lacks(partGateway, "not enrolled yet")
		all.Go(func() (err error) {
			if identity, err = s.platform.join(ctx); err != nil {
				return err
			}
			s.ready.has(partGateway)
			return nil
		})
	}
	err = all.Wait()
	return identity, err
}

// serveOverlay serves the API on the overlay until ctx ends. Its error is that of an
// identity which the overlay no longer accepts; it is not kept for the next start.
func (s *service) serveOverlay(ctx context.Context, identity *reporter.Enrolment, server *grpc.Server) error {
	network, err := ziti.New(ziti.Options{Identity: identity.Identity, Service: identity.Service, Log: s.log})
	if err != nil {
		return err
	}
	binding := overlay.New(overlay.Options{Network: network, Serve: server.Serve, Meter: s.metrics.Overlay, Log: s.log})
	s.mu.Lock()
	s.binding = binding
	s.mu.Unlock()
	s.ready.has(partOverlay) // the binding tells from here on
	err = binding.Run(ctx)
	if errors.Is(err, overlay.ErrUnauthorized) {
		return errors.Join(err, overlay.File(s.config.Ziti.IdentityFile).Forget())
	}
	return err
}

// serveUntil serves until ctx ends; then it tells health checks, ends the streams,
// and lets the other calls in flight finish within a bound. Those that do not are
// cancelled, and waited for: a start takes back what it made.
func (s *service) serveUntil(ctx context.Context, api *rpc.Server, healthy *health.Server, serve func() error, servers ...*grpc.Server) error {
	healthy.SetServingStatus("", healthv1.HealthCheckResponse_SERVING)
	s.ready.has(partCalls)
	ended, stopped := make(chan struct{}), make(chan struct{})
	defer func() {
		close(ended)
		<-stopped
	}()
	go func() {
		defer close(stopped)
		select {
		case <-ended:
			return
		case <-ctx.Done():
		}
		s.ready.lacks(partCalls, "the service is stopping")
		healthy.Shutdown()
		api.EndStreams()
		var all sync.WaitGroup
		for _, server := range servers {
			all.Go(func() {
				force := time.AfterFunc(shutdownLimit, server.Stop)
				defer force.Stop()
				server.GracefulStop()
			})
		}
		all.Wait()
	}()
	if err := serve(); err != nil {
		return fmt.Errorf("serving: %w", err)
	}
	return nil
}
