package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime/debug"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/agynio/k8s-runner/applier"
	"github.com/agynio/k8s-runner/cluster"
	"github.com/agynio/k8s-runner/config"
	"github.com/agynio/k8s-runner/rpc"
	"github.com/agynio/k8s-runner/workload"
)

// shutdownLimit bounds the wait for calls in flight when the service ends.
const shutdownLimit = 10 * time.Second

func newServe() *cobra.Command {
	var file string
	var printConfig bool
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the RunnerService",
		Long: `Serve the RunnerService.

Settings come from the defaults, then --config FILE, then the environment, then
flags; each overrides the one before. --print-config shows the result, secrets
masked, in the form of the file.`,
		Example: `  KUBE_NAMESPACE=workloads k8s-runner serve
  k8s-runner serve --kube-namespace workloads --kube-kubeconfig ~/.kube/config
  k8s-runner serve --config runner.yaml --print-config`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := config.Load(config.Sources{File: file, Environ: os.Environ(), Flags: cmd.Flags()})
			if err != nil {
				return err
			}
			if printConfig {
				text, err := c.YAML()
				if err != nil {
					return err
				}
				_, err = cmd.OutOrStdout().Write(text)
				return err
			}
			return serve(cmd.Context(), c)
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "YAML file of settings")
	cmd.Flags().BoolVar(&printConfig, "print-config", false, "print the settings and exit")
	config.AddFlags(cmd.Flags())
	return cmd
}

// serve runs the service until ctx ends. It is the only place that knows all
// the parts.
func serve(ctx context.Context, c config.Config) error {
	log, err := newLog(c.Log)
	if err != nil {
		return err
	}
	if c.Ziti.Enabled {
		return errors.New("ziti.enabled (environment ZITI_ENABLED): this version of the runner has no overlay; unset it to serve on TCP")
	}
	offered, err := loadCatalog(c.Catalog.Path)
	if err != nil {
		return fmt.Errorf("catalog.path (environment CATALOG_PATH): %w", err)
	}
	typed, writes, err := newClients(c.Kube)
	if err != nil {
		return err
	}
	writer := applier.New(writes, discovery.ToServerResourcesInterfaceWithContext(typed.Discovery()), c.Kube.Namespace)
	operator, err := newStore(c, offered, typed, writes, writer, log)
	if err != nil {
		return err
	}
	pods, err := cluster.NewPods(typed, c.Kube.Namespace)
	if err != nil {
		return err
	}
	claims, err := cluster.NewClaims(typed, c.Kube.Namespace)
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", c.GRPC.Address)
	if err != nil {
		return fmt.Errorf("serving on grpc.address: %w", err)
	}

	collectLessOften()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		pods.Run(ctx)
		return nil
	})
	group.Go(func() error {
		claims.Run(ctx)
		return nil
	})
	group.Go(func() error { return operator.Run(ctx) })
	group.Go(func() error {
		defer listener.Close() //nolint:errcheck // nothing to do about it
		for _, wait := range [...]func(context.Context) error{pods.WaitForSync, claims.WaitForSync, operator.WaitForSync} {
			if err := wait(ctx); err != nil {
				return err
			}
		}
		server, ready := rpc.NewGRPC(rpc.NewServer(operator, writer, pods, claims), log)
		log.WithFields(logrus.Fields{"address": listener.Addr().String(), "namespace": c.Kube.Namespace}).Info("serving")
		return serveUntil(ctx, server, ready, listener)
	})
	err = group.Wait()
	log.Info("stopped")
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// collectLessOften costs little memory: what lives is a few megabytes of cache,
// what is made for a start is thrown away with it.
func collectLessOften() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}

// serveUntil serves until ctx ends; then it tells health checks, and lets the
// calls in flight finish within a bound.
func serveUntil(ctx context.Context, server *grpc.Server, ready *health.Server, listener net.Listener) error {
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-ended:
			return
		case <-ctx.Done():
		}
		ready.Shutdown()
		force := time.AfterFunc(shutdownLimit, server.Stop)
		defer force.Stop()
		server.GracefulStop()
	}()
	ready.SetServingStatus("", healthv1.HealthCheckResponse_SERVING)
	if err := server.Serve(listener); err != nil {
		return fmt.Errorf("serving: %w", err)
	}
	return nil
}

func newLog(c config.Log) (*logrus.Logger, error) {
	log := logrus.New()
	level, err := logrus.ParseLevel(c.Level)
	if err != nil {
		return nil, fmt.Errorf("reading log.level: %w", err)
	}
	log.SetLevel(level)
	log.SetFormatter(&logrus.TextFormatter{FullTimestamp: true})
	if c.Format == "json" {
		log.SetFormatter(&logrus.JSONFormatter{})
	}
	return log, nil
}

// newClients returns a typed client, which reads protobuf, and a dynamic one.
func newClients(c config.Kube) (kubernetes.Interface, dynamic.Interface, error) {
	base, err := restConfig(c.Kubeconfig)
	if err != nil {
		return nil, nil, fmt.Errorf("finding the cluster (kube.kubeconfig): %w", err)
	}
	base.QPS, base.Burst = c.QPS, c.Burst
	base.UserAgent = workload.FieldManager
	// The API server would compress every event of the watch; in a cluster that
	// costs both sides more than the bytes.
	base.DisableCompression = true
	// Warnings are other people's words about a request's content.
	base.WarningHandler = rest.NoWarnings{}
	reads := rest.CopyConfig(base)
	reads.ContentType = "application/vnd.kubernetes.protobuf"
	reads.AcceptContentTypes = reads.ContentType + ",application/json"
	typed, err := kubernetes.NewForConfig(reads)
	if err != nil {
		return nil, nil, fmt.Errorf("making the client for reads: %w", err)
	}
	writes, err := dynamic.NewForConfig(base)
	if err != nil {
		return nil, nil, fmt.Errorf("making the client for writes: %w", err)
	}
	return typed, writes, nil
}

// restConfig reads path, or if that is empty what a Pod or kubectl would use.
func restConfig(path string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = path
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
}
