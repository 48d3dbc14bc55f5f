package main

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/agynio/k8s-runner/overrides"
)

// Parts without which a runner cannot start workloads.
const (
	partCalls     = "grpc"
	partClaims    = "claims"
	partContact   = "kubernetes"
	partGateway   = "gateway"
	partOverlay   = "overlay"
	partPods      = "pods"
	partTemplates = "templates"
)

// readiness is what the runner lacks, and why, by part.
type readiness struct {
	mu      sync.Mutex
	reasons map[string]string
}

// newReadiness returns that of a runner that has just begun.
func newReadiness() *readiness {
	return &readiness{reasons: map[string]string{
		partCalls: "not served yet", partClaims: "not read yet", partPods: "not read yet", partTemplates: "not read yet",
	}}
}

func (r *readiness) lacks(part, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reasons[part] = reason
}

func (r *readiness) has(part string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.reasons, part)
}

// reach tells why the API server is out of reach, if it is.
type reach interface {
	Lost() (reason string, lost bool)
}

// bound tells whether callers reach the runner over the overlay.
type bound interface {
	Ready() (ready bool, reason string)
}

// lines returns the reasons, each on a line that starts with its part. There may be no
// overlay: nil.
func (r *readiness) lines(templates *overrides.State, server reach, overlay bound) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var lines []string
	for _, part := range slices.Sorted(maps.Keys(r.reasons)) {
		lines = append(lines, part+": "+r.reasons[part])
	}
	if templates.Engine == nil && templates.Rejection != nil {
		lines = append(lines, partTemplates+": none were good since the start: "+printable(short(templates.Rejection.Findings)))
	}
	if reason, lost := server.Lost(); lost {
		lines = append(lines, partContact+": "+printable(reason))
	}
	if overlay != nil {
		if ready, reason := overlay.Ready(); !ready {
			lines = append(lines, partOverlay+": "+printable(reason))
		}
	}
	return lines
}

// short is the first of several findings, and how many more there are.
func short(findings []string) string {
	if len(findings) < 2 {
		return strings.Join(findings, "")
	}
	return findings[0] + ", and " + counted(len(findings)-1, "more finding")
}
