package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	k8srunnerv1 "github.com/agynio/k8s-runner/proto/k8srunner/v1"
	"github.com/agynio/k8s-runner/workload"
)

const (
	defaultAddress  = "127.0.0.1:50051"
	addressVariable = "RUNNER_ADDRESS"
	defaultTimeout  = 30 * time.Second
	// pingEvery is when a silent stream is tried, to find out that the other side is
	// gone.
	pingEvery = time.Minute
)

// client is a connection to a runner.
type client struct {
	runnerv1.RunnerServiceClient
	k8srunnerv1.OperatorServiceClient
}

// clientCommand makes cmd a client: it gets the flags of one, and run gets a
// connection.
func clientCommand(cmd *cobra.Command, run func(cmd *cobra.Command, c client, args []string) error) *cobra.Command {
	var address string
	var timeout time.Duration
	var secured tlsFlags
	cmd.GroupID = groupClient
	cmd.Flags().StringVar(&address, "address", defaultAddress, "`HOST:PORT` of the runner ["+addressVariable+"]")
	cmd.Flags().DurationVar(&timeout, "timeout", defaultTimeout, "longest time for a call to the runner that has one answer; 0: no limit")
	secured.add(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if value := os.Getenv(addressVariable); value != "" && !cmd.Flags().Changed("address") {
			address = value
		}
		if _, _, err := net.SplitHostPort(address); err != nil {
			return usage(cmd, fmt.Errorf("--address (%s) %q is not host:port", addressVariable, address))
		}
		if err := secured.read(cmd); err != nil {
			return err
		}
		with, err := secured.credentials()
		if err != nil {
			return err
		}
		to := endpoint{address: address, tls: secured.on, named: secured.cert != ""}
		conn, err := grpc.NewClient(address,
			grpc.WithTransportCredentials(with),
			grpc.WithUnaryInterceptor(unary(to, timeout)),
			grpc.WithStreamInterceptor(streaming(to)),
			grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: pingEvery}),
		)
		if err != nil {
			return fmt.Errorf("connecting to %s: %w", address, err)
		}
		return errors.Join(run(cmd, client{runnerv1.NewRunnerServiceClient(conn), k8srunnerv1.NewOperatorServiceClient(conn)}, args), conn.Close())
	}
	return cmd
}

// needRefs wants at least one workload.
func needRefs(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return errors.New("there is no ID of a workload")
	}
	return nil
}

// unary bounds each call and makes its error readable. Only here is a status
// seen; the commands handle ordinary errors.
func unary(to endpoint, timeout time.Duration) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, timeout)
			defer cancel()
		}
		var header metadata.MD
		if err := invoke(ctx, method, req, reply, conn, append(opts, grpc.Header(&header))...); err != nil {
			return &callError{status: status.Convert(err), to: to, timeout: timeout, header: header}
		}
		return nil
	}
}

// refs finds workloads by what users call them.
type refs struct {
	client client
	// all holds the ids of all workloads once a prefix was looked up.
	all []string
}

// id returns the id of the workload that ref means: an id, the name of a Pod,
// or the beginning of either if only one workload has it.
func (r *refs) id(ctx context.Context, ref string) (string, error) {
	if id, ok := workload.ParseRef(ref); ok {
		return id, nil // whether it exists, the call itself tells
	}
	prefix := strings.TrimPrefix(ref, workload.PodName(""))
	if prefix == "" || strings.Trim(prefix, "0123456789abcdef-") != "" {
		return "", workload.NoSuchWorkload(ref)
	}
	if r.all == nil {
		found, err := r.client.FindWorkloadsByLabels(ctx, &runnerv1.FindWorkloadsByLabelsRequest{All: true})
		if err != nil {
			return "", err
		}
		r.all = found.GetTargetIds()
	}
	matches := slices.DeleteFunc(slices.Clone(r.all), func(id string) bool { return !strings.HasPrefix(id, prefix) })
	switch len(matches) {
	case 0:
		return "", workload.NoSuchWorkload(ref)
	case 1:
		return matches[0], nil
	}
	return "", fmt.Errorf("%q is the beginning of %d ids:\n  %s", ref, len(matches), strings.Join(matches, "\n  "))
}

// each calls do with the id of every workload that args mean. It goes on after
// an error and returns them all, each saying what was being done.
func (c client) each(ctx context.Context, args []string, doing string, do func(id string) error) error {
	var problems []error
	known := &refs{client: c}
	for _, ref := range args {
		id, err := known.id(ctx, ref)
		if err == nil {
			err = do(id)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s %s: %w", doing, ref, err))
		}
	}
	return errors.Join(problems...)
}
