package main

import (
	"google.golang.org/protobuf/types/known/timestamppb"

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
