package main

import (
	"context"
	"flag"
	"fmt"
	"sync"
	"time"

	"github.com/cloudnativelabs/kube-router/v2/pkg/controllers/netpol"
	"github.com/cloudnativelabs/kube-router/v2/pkg/healthcheck"
	"github.com/cloudnativelabs/kube-router/v2/pkg/options"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// enforcePolicies runs kube-router's controller of network policies, without the
// rest of kube-router: kube-proxy and the bridge plugin are there already.
func enforcePolicies(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("netpol", flag.ContinueOnError)
	kubeconfig := fs.String("kubeconfig", "", "kubeconfig")
	node := fs.String("node", "", "node name")
	cidr := fs.String("service-cidr", "", "cluster IPs")
	if err := fs.Parse(args); err != nil {
		return err
	}
	client, err := newClient(*kubeconfig)
	if err != nil {
		return err
	}
	cfg := options.NewKubeRouterConfig()
	cfg.HostnameOverride, cfg.ClusterIPCIDRs = *node, []string{*cidr}
	cfg.EnableIPv4, cfg.EnableIPv6 = true, false
	f := informers.NewSharedInformerFactory(client, 0)
	pods := f.Core().V1().Pods().Informer()
	namespaces := f.Core().V1().Namespaces().Informer()
	policies := f.Networking().V1().NetworkPolicies().Informer()
	f.Start(ctx.Done())
	f.WaitForCacheSync(ctx.Done())
	if err := waitForAddress(ctx, client, *node); err != nil {
		return err
	}
	tables, sets, err := netpol.NewIPTablesHandlers(cfg)
	if err != nil {
		return fmt.Errorf("reaching iptables and ipset: %w", err)
	}
	var mu sync.Mutex
	c, err := netpol.NewNetworkPolicyController(client, cfg, pods, policies, namespaces, &mu, tables, sets)
	if err != nil {
		return fmt.Errorf("making the controller: %w", err)
	}
	for _, h := range []struct {
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandler
	}{{pods, c.PodEventHandler}, {namespaces, c.NamespaceEventHandler}, {policies, c.NetworkPolicyEventHandler}} {
		if _, err := h.informer.AddEventHandler(h.handler); err != nil {
			return fmt.Errorf("watching: %w", err)
		}
	}
	// the controller wants somebody who listens to its heartbeats
	beats := make(chan *healthcheck.ControllerHeartbeat, 10)
	go func() {
		for range beats {
		}
	}()
	var wg sync.WaitGroup
	wg.Add(1)
	go c.Run(beats, ctx.Done(), &wg)
	wg.Wait()
	return nil
}

// waitForAddress waits until the node has registered: the controller reads it
// once, at its start.
func waitForAddress(ctx context.Context, client kubernetes.Interface, node string) error {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		if n, err := client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{}); err == nil && len(n.Status.Addresses) > 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the node %s: %w", node, ctx.Err())
		case <-tick.C:
		}
	}
}
