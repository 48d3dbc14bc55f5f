package rpc

import (
	"context"

	"github.com/agynio/k8s-runner/workload"
)

// Logs streams what containers wrote.
type Logs interface {
	// Stream sends a container's log until it ends, or as long as the container runs.
	Stream(ctx context.Context, req *workload.LogRequest, send func(workload.LogPiece) error) error
}
