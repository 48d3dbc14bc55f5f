package request

import (
	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

// How many of each a request may have, so that reading one takes little time
// and memory whatever it holds. Kubernetes counts none of them. All are far
// above what runs: a Pod has 1.5 MiB in etcd.
const (
	// The kubelet starts containers one after the other, and the status of each
	// is about a KiB of its Pod.
	maxSidecars = 50
	maxInits    = 50
	// A node attaches some dozens of volumes.
	maxVolumes = 64
	// Kernels take 2 MiB of arguments and variables together.
	maxEnv  = 1000
	maxArgs = 4096
	// Each is a mount, and each inline file a key of one Secret.
	maxMounts = 500
	maxFiles  = 500
	// Linux has 41 capabilities, a catalog two; a request may repeat them.
	maxCapabilities = 64
	// Each can become a Secret.
	maxCredentials = 64
	// Labels and properties: all annotations of an object have 256 KiB.
	maxPairs = 256
)

// isBounded refuses more of something than a request may have.
func (p *parser) isBounded(req *runnerv1.StartWorkloadRequest) bool {
	p.most("sidecars", len(req.GetSidecars()), maxSidecars)
	p.most("init_containers", len(req.GetInitContainers()), maxInits)
	p.most("volumes", len(req.GetVolumes()), maxVolumes)
	p.most("capabilities", len(req.GetCapabilities()), maxCapabilities)
	p.most("image_pull_credentials", len(req.GetImagePullCredentials()), maxCredentials)
	p.most("inline_files", len(req.GetInlineFiles()), maxFiles)
	p.most("labels", len(req.GetLabels()), maxPairs)
	p.most("additional_properties", len(req.GetAdditionalProperties()), maxPairs)
	if len(p.violations) > 0 {
		return false
	}
	p.mostOf("main", req.GetMain())
	for i, c := range req.GetSidecars() {
		p.mostOf(index("sidecars", i), c)
	}
	for i, c := range req.GetInitContainers() {
		p.mostOf(index("init_containers", i), c)
	}
	for i, v := range req.GetVolumes() {
		field := index("volumes", i)
		p.most(field+".labels", len(v.GetLabels()), maxPairs)
		p.most(field+".additional_properties", len(v.GetAdditionalProperties()), maxPairs)
	}
	return len(p.violations) == 0
}

func (p *parser) mostOf(field string, c *runnerv1.ContainerSpec) {
	p.most(field+".env", len(c.GetEnv()), maxEnv)
	p.most(field+".cmd", len(c.GetCmd()), maxArgs)
	p.most(field+".mounts", len(c.GetMounts()), maxMounts)
	p.most(field+".inline_file_mounts", len(c.GetInlineFileMounts()), maxMounts)
	p.most(field+".required_capabilities", len(c.GetRequiredCapabilities()), maxCapabilities)
	p.most(field+".additional_properties", len(c.GetAdditionalProperties()), maxPairs)
}

func (p *parser) most(field string, count, limit int) {
	if count > limit {
		p.fault(field, "too_many", "%d are given, a request has at most %d", count, limit)
	}
}
