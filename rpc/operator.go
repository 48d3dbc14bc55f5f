package rpc

import (
	"context"

	k8srunnerv1 "github.com/agynio/k8s-runner/proto/k8srunner/v1"
)

// Part fills the field that one part of the runner has in a status. It reads
// memory, and puts in nothing that came with a request.
type Part func(status *k8srunnerv1.GetStatusResponse)

// Operator is the OperatorService.
type Operator struct {
	k8srunnerv1.UnimplementedOperatorServiceServer

	parts []Part
}

// NewOperator returns an Operator that tells of parts.
func NewOperator(parts ...Part) *Operator { return &Operator{parts: parts} }

// GetStatus asks every part.
func (o *Operator) GetStatus(context.Context, *k8srunnerv1.GetStatusRequest) (*k8srunnerv1.GetStatusResponse, error) {
	status := &k8srunnerv1.GetStatusResponse{}
	for _, fill := range o.parts {
		fill(status)
	}
	return status, nil
}
