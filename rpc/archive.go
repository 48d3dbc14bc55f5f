package rpc

import (
	"context"

	"github.com/agynio/k8s-runner/workload"
)

// Archives puts files into containers.
type Archives interface {
	// Put extracts a tar archive below path.
	Put(ctx context.Context, target workload.Target, path string, archive []byte) error
}
