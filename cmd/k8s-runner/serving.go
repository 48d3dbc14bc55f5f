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

	"github.com/agynio/k8s-runner/reporter"
	"github.com/agynio/k8s-runner/rpc"
)

// shutdownLimit bounds the wait for calls in flight when the service ends.
const shutdownLimit = 10 * time.Second

// serveCalls serves the API once there is something to answer from, and the platform
// knows of it, until ctx ends.
func (s *service) serveCalls(ctx context.Context, listener net.Listener) error {
	begin, beginning := errgroup.WithContext(ctx)
	for part, wait := range map[string]func(context.Context) error{
		partPods: s.pods.WaitForSync, partClaims: s.claims.WaitForSync, partTemplates: s.operator.WaitForSync,
	} {
		begin.Go(func() error {
			if err := wait(beginning); err != nil {
				return err
			}
			s.ready.has(part)
			return nil
		})
	}
	var identity *reporter.Enrolment
	if s.platform != nil {
		defer s.platform.close()
		s.ready.lacks(partGateway, "not enrolled yet")
		begin.Go(func() (err error) {
			if identity, err = s.platform.join(beginning); err != nil {
				return err
			}
			s.ready.has(partGateway)
			return nil
		})
	}
	if err := begin.Wait(); err != nil {
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
	serving, ctx := errgroup.WithContext(ctx)
	if s.platform != nil {
		serving.Go(func() error {
			s.platform.report(ctx)
			return nil
		})
	}
	if s.config.Ziti.Enabled {
		door := rpc.NewDoor(api, healthy, s.secured...)
		s.log.WithField("address", listener.Addr().String()).Info("answering health and Ready")
		serving.Go(func() error {
			return s.serveUntil(ctx, api, healthy, func() error { return door.Serve(listener) }, door, server)
		})
		serving.Go(func() error { return s.serveOverlay(ctx, identity, server) })
		return serving.Wait()
	}
	s.log.WithFields(logrus.Fields{"address": listener.Addr().String(), "namespace": s.config.Kube.Namespace}).Info("serving")
	serving.Go(func() error {
		return s.serveUntil(ctx, api, healthy, func() error { return server.Serve(listener) }, server)
	})
	return serving.Wait()
}

// serveOverlay serves the API on the overlay until ctx ends.
func (s *service) serveOverlay(ctx context.Context, identity *reporter.Enrolment, server *grpc.Server) error {
	return errors.New("no overlay yet")
}

// serveUntil serves until ctx ends; then it tells health checks, ends the streams,
// and lets the other calls in flight finish within a bound. Those that do not are
// cancelled, and waited for: a start takes back what it made.
func (s *service) serveUntil(ctx context.Context, api *rpc.Server, healthy *health.Server, serve func() error, servers ...*grpc.Server) error {
	healthy.SetServingStatus("", healthv1.HealthCheckResponse_SERVING)
	s.ready.has(partCalls)
	ended := make(chan struct{})
	defer close(ended)
	go func() {
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
