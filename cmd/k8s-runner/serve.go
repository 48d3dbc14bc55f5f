package main

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/agynio/k8s-runner/cluster/contact"
	"github.com/agynio/k8s-runner/config"
	"github.com/agynio/k8s-runner/rpc"
	"github.com/agynio/k8s-runner/tracing"
	"github.com/agynio/k8s-runner/workload"
)

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
		Example: `  KUBE_NAMESPACE=workloads k8s-runner serve --grpc-address 127.0.0.1:50051
  k8s-runner serve --kube-namespace workloads --tls-cert tls.crt --tls-key tls.key --tls-client-ca callers.crt
  k8s-runner serve --config runner.yaml --print-config`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := config.Load(config.Sources{File: file, Environ: os.Environ(), Flags: cmd.Flags()})
			if err != nil {
				return err
			}
			if err := c.CheckServing(); err != nil {
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

// serve runs the service until ctx ends.
func serve(ctx context.Context, c config.Config) error {
	log, err := newLog(c.Log)
	if err != nil {
		return err
	}
	s, err := newService(c, log)
	if err != nil {
		return err
	}
	return s.run(ctx)
}

// collectLessOften costs little memory: what lives is a few megabytes of cache,
// what is made for a start is thrown away with it.
func collectLessOften() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
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
	log.AddHook(rpc.LogFields{})
	log.AddHook(tracing.LogFields{})
	return log, nil
}

// access is how the runner reaches the cluster.
type access struct {
	config *rest.Config
	// reads reads protobuf, and fills the caches.
	reads  kubernetes.Interface
	writes dynamic.Interface
}

func newAccess(c config.Kube, watched *contact.Contact) (*access, error) {
	base, err := restConfig(c.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("finding the cluster (kube.kubeconfig): %w", err)
	}
	base.QPS, base.Burst = c.QPS, c.Burst
	base.UserAgent = workload.FieldManager
	// The API server would compress every event of the watch; in a cluster that
	// costs both sides more than the bytes.
	base.DisableCompression = true
	// Warnings are other people's words about a request's content.
	base.WarningHandler = rest.NoWarnings{}
	base.Wrap(watched.Wrap)
	caches := protobuf(base)
	caches.Wrap(watched.Caches)
	reads, err := kubernetes.NewForConfig(caches)
	if err != nil {
		return nil, fmt.Errorf("making the client for reads: %w", err)
	}
	writes, err := dynamic.NewForConfig(base)
	if err != nil {
		return nil, fmt.Errorf("making the client for writes: %w", err)
	}
	return &access{config: base, reads: reads, writes: writes}, nil
}

// askHealth asks the API server whether it is well; who looks at the transport sees
// what it says.
func (a *access) askHealth(ctx context.Context) {
	a.reads.Discovery().RESTClient().Get().AbsPath("/readyz").MaxRetries(0).Do(ctx)
}

// protobuf is base for a typed client, which reads less with it.
func protobuf(base *rest.Config) *rest.Config {
	config := rest.CopyConfig(base)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = config.ContentType + ",application/json"
	return config
}

// restConfig reads path, or if that is empty what a Pod or kubectl would use.
func restConfig(path string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = path
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
}
