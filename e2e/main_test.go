//go:build e2e

// Package e2e tests the runner as its callers meet it: the built binary,
// through its gRPC API, on a real Kubernetes, with the permissions of its Role
// and no more.
package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

var auditLog = flag.String("audit-log", "", "the API server's audit log, to count a service account's requests")

// setupLimit bounds everything that is made once for all tests.
const setupLimit = 5 * time.Minute

// suite is what all tests share.
var suite struct {
	admin  kubernetes.Interface
	config *rest.Config
	binary string
	// probe is the program that shows what the network lets through, where it is needed.
	probe string
	// rules are those of the runner's Role.
	rules []rbacv1.PolicyRule
}

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), setupLimit)
	defer cancel()
	kubeconfig := os.Getenv("KUBECONFIG")
	if kubeconfig == "" {
		return 1, fmt.Errorf("KUBECONFIG is not set; make test brings up a cluster and sets it")
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return 1, fmt.Errorf("reading KUBECONFIG: %w", err)
	}
	config.QPS = -1 // the tests are not what is measured
	if suite.admin, err = kubernetes.NewForConfig(config); err != nil {
		return 1, fmt.Errorf("making a client: %w", err)
	}
	suite.config = config
	if suite.rules, err = readRules(); err != nil {
		return 1, err
	}
	dir, err := os.MkdirTemp("", "k8s-runner-e2e-")
	if err != nil {
		return 1, fmt.Errorf("making a folder: %w", err)
	}
	defer os.RemoveAll(dir)
	// Benchmarks measure what is shipped; tests look for races.
	if suite.binary, err = build(ctx, dir, flag.Lookup("test.bench").Value.String() == ""); err != nil {
		return 1, err
	}
	if *image != "" {
		if suite.probe, err = buildProbe(ctx, dir); err != nil {
			return 1, err
		}
	}
	return m.Run(), nil
}
