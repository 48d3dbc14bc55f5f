package main

import (
	"context"
	"fmt"
	"net"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/agynio/k8s-runner/cluster"
	"github.com/agynio/k8s-runner/cluster/events"
	"github.com/agynio/k8s-runner/cluster/logs"
)

// reads are the parts that read from the cluster.
type reads struct {
	pods   *cluster.Pods
	claims *cluster.Claims
	logs   *logs.Logs
	events *events.Events
}

func newReads(a *access, namespace string) (reads, error) {
	pods, err := cluster.NewPods(a.reads, namespace)
	if err != nil {
		return reads{}, err
	}
	claims, err := cluster.NewClaims(a.reads, namespace)
	if err != nil {
		return reads{}, err
	}
	following, err := newStreamClient(a.config, followBuffer)
	if err != nil {
		return reads{}, err
	}
	reading, err := newStreamClient(a.config, readBuffer)
	if err != nil {
		return reads{}, err
	}
	core := following.CoreV1()
	return reads{
		pods: pods, claims: claims,
		logs:   logs.New(core.Pods(namespace), reading.CoreV1().Pods(namespace), pods),
		events: events.New(core.Events(namespace), core.Pods(namespace), pods),
	}, nil
}

// What bounds, in bytes, what the system takes in of a stream for a caller who is
// slow; by default it can be many times that.
const (
	// followBuffer is small: what is in it when a connection breaks is lost, and the
	// kubelet reads no log again that was rotated since.
	followBuffer = 256 << 10
	// readBuffer is as large as a log often is. With much less the kubelet stops and
	// goes on again and again, which is slower, as measured.
	readBuffer = 4 << 20
)

// newStreamClient returns a client for answers that last. Each has a connection
// of its own: one whose caller is slow then holds no other one up, and what waits
// for him is bounded. What bounds the rate of the others does not touch them; the
// number of streams is bounded.
func newStreamClient(base *rest.Config, buffer int) (kubernetes.Interface, error) {
	config := protobuf(base)
	config.QPS = -1
	config.NextProtos = []string{"http/1.1"}
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		return dialStream(ctx, network, address, buffer)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the client for streams: %w", err)
	}
	return client, nil
}

// dialStream connects so that a connection that is dead, without an end that
// anybody sent, is known to be so within half a minute.
func dialStream(ctx context.Context, network, address string, buffer int) (net.Conn, error) {
	dialer := &net.Dialer{
		Timeout:         10 * time.Second,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3},
	}
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(buffer) // without it, all works too
	}
	return conn, nil
}
