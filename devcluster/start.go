package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"
)

// prepareNode makes what the components expect to find.
func prepareNode(_ context.Context, n *node) error {
	if err := privateMounts(); err != nil {
		return err
	}
	if err := makeNetwork(); err != nil {
		return err
	}
	return makeCgroups(n.cgroupName())
}

// startControlPlane starts what a node needs before it can join.
func startControlPlane(ctx context.Context, n *node) error {
	if err := n.startAll(etcd(n.settings), apiServer(n.settings)); err != nil {
		return err
	}
	if !n.Simulated {
		if err := startRuntime(ctx, n); err != nil {
			return err
		}
	}
	a, err := newAPI(n.settings, n.internalAPI())
	if err != nil {
		return err
	}
	if err := n.wait(ctx, apiServerName, time.Minute, a.ready); err != nil {
		return err
	}
	if err := n.startAll(controllers(n.settings)...); err != nil {
		return err
	}
	return a.applyBase(ctx, n.settings)
}

// startRuntime starts what needs no API server: the forwarders, containerd, the
// registries with their images.
func startRuntime(ctx context.Context, n *node) error {
	for _, f := range []struct {
		name, addr string
		fd         uintptr
	}{{forwardAPI, apiAddr, fdListenAPI}, {forwardMirror, mirrorAddr, fdListenMirror}} {
		listener := os.NewFile(f.fd, f.name)
		if err := n.start(component{f.name, "devcluster", []string{"forward", f.addr}}, listener); err != nil {
			return err
		}
		listener.Close()
	}
	if err := n.startAll(append(registries(n.settings), containerd(n.settings))...); err != nil {
		return err
	}
	for name, addr := range map[string]string{mirrorName: mirrorAddr, registryName: privateAddr} {
		if err := n.wait(ctx, name, 10*time.Second, listens("tcp", addr)); err != nil {
			return err
		}
	}
	if err := pushBaseImages(n.settings); err != nil {
		return err
	}
	return n.wait(ctx, containerdName, 30*time.Second, listens("unix", n.run("containerd.sock")))
}

func listens(network, addr string) func(context.Context) error {
	return func(context.Context) error {
		c, err := net.Dial(network, addr)
		if err != nil {
			return err
		}
		return c.Close()
	}
}

func startNode(ctx context.Context, n *node) error {
	if err := n.startAll(nodeAgents(n.settings)...); err != nil {
		return err
	}
	return waitForNode(ctx, n, kubeletName)
}

func waitForNode(ctx context.Context, n *node, agent string) error {
	a, err := newAPI(n.settings, n.internalAPI())
	if err != nil {
		return err
	}
	if err := n.wait(ctx, agent, 90*time.Second, a.nodeReady); err != nil {
		return fmt.Errorf("bringing up the node: %w", err)
	}
	return nil
}
