package main

import (
	"maps"
	"slices"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/agynio/k8s-runner/engine"
	"github.com/agynio/k8s-runner/overrides"
	k8srunnerv1 "github.com/agynio/k8s-runner/proto/k8srunner/v1"
	"github.com/agynio/k8s-runner/rpc"
)

// templatesPart tells of the operator's templates.
func templatesPart(store *overrides.Store) rpc.Part {
	return func(status *k8srunnerv1.GetStatusResponse) {
		status.Templates = templatesStatus(store.Current())
	}
}

func templatesStatus(s *overrides.State) *k8srunnerv1.TemplatesStatus {
	out := &k8srunnerv1.TemplatesStatus{}
	if s.Engine != nil {
		out.Served, out.Digest, out.LoadedAt = true, s.Engine.Digest(), timestamppb.New(s.LoadedAt)
	}
	for _, l := range s.Layers {
		out.Layers = append(out.Layers, &k8srunnerv1.TemplateLayer{
			Name: l.Name, Kind: l.Kind, ResourceVersion: l.ResourceVersion, Digest: l.Digest,
		})
	}
	if r := s.Rejection; r != nil {
		out.Rejection = &k8srunnerv1.TemplatesRejection{Findings: r.Findings, At: timestamppb.New(r.At), ConfigMaps: r.ConfigMaps}
	}
	return out
}

// parts are what the runner tells of itself.
func (s *service) parts() []rpc.Part {
	parts := []rpc.Part{templatesPart(s.operator), s.processPart, s.kubernetesPart, s.catalogPart, s.overlayPart}
	if s.platform != nil {
		parts = append(parts, s.platform.status)
	}
	return parts
}

func (s *service) processPart(status *k8srunnerv1.GetStatusResponse) {
	status.Process = &k8srunnerv1.ProcessStatus{
		Version: currentVersion(), StartedAt: timestamppb.New(s.began), NotReady: s.lacks(), Errors: s.errors.all(),
	}
}

func (s *service) kubernetesPart(status *k8srunnerv1.GetStatusResponse) {
	out := &k8srunnerv1.KubernetesStatus{Namespace: s.config.Kube.Namespace, Workloads: uint32(len(s.pods.List(nil)))} //nolint:gosec // it is a count
	out.Unreachable, _ = s.contact.Lost()
	heard := s.metrics.API.Caches()
	for _, resource := range slices.Sorted(maps.Keys(heard)) {
		out.Caches = append(out.Caches, &k8srunnerv1.CacheStatus{Resource: resource, HeardAt: timestamppb.New(heard[resource])})
	}
	status.Kubernetes = out
}

func (s *service) catalogPart(status *k8srunnerv1.GetStatusResponse) {
	status.Catalog = &k8srunnerv1.CatalogStatus{
		Source: s.config.Catalog.Path, Flavors: uint32(len(s.offered.Flavors)), StorageClasses: uint32(len(s.offered.StorageClasses)), //nolint:gosec // they are counts
		Capabilities: engine.Capabilities(s.offered, s.config),
	}
}

func (s *service) overlayPart(status *k8srunnerv1.GetStatusResponse) {
	s.mu.Lock()
	binding := s.binding
	s.mu.Unlock()
	if binding == nil {
		return
	}
	ready, reason := binding.Ready()
	status.Overlay = &k8srunnerv1.OverlayStatus{Service: s.platform.service(), Ready: ready, Reason: reason}
}
