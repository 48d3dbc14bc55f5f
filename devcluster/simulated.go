package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// kwok keeps the simulated node and its Pods in the states that a kubelet would
// report. It has no server: logs and exec of a simulated Pod are errors rather
// than something that looks real.
func kwok(s settings) component {
	return component{kwokName, "kwok", []string{
		"--kubeconfig=" + s.pki("admin.kubeconfig"), "--config=" + s.etc("kwok.yaml"),
		"--manage-all-nodes=true", "--node-ip=127.0.0.1", "--cidr=" + nodeCIDR,
		"--node-lease-duration-seconds=40",
	}}
}

// writeKwokStages writes what kwok makes of nodes and Pods: the stages that come
// with it, the ones without delays. kwok itself has none.
func writeKwokStages(ctx context.Context, s settings) error {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", "sigs.k8s.io/kwok@v"+kwokVersion)
	cmd.Dir = s.Dir
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("finding kwok's module: %w", err)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		return fmt.Errorf("finding kwok's module: %w", err)
	}
	var stages [][]byte
	for _, name := range []string{"node/fast/node-initialize", "node/heartbeat-with-lease/node-heartbeat-with-lease",
		"pod/fast/pod-ready", "pod/fast/pod-complete", "pod/fast/pod-delete"} {
		stage, err := os.ReadFile(filepath.Join(module.Dir, "kustomize/stage", name+".yaml"))
		if err != nil {
			return fmt.Errorf("reading kwok's stages: %w", err)
		}
		stages = append(stages, stage)
	}
	return os.WriteFile(s.etc("kwok.yaml"), bytes.Join(stages, []byte("\n---\n")), 0o644)
}

func startSimulatedNode(ctx context.Context, n *node) error {
	if err := n.start(kwok(n.settings)); err != nil {
		return err
	}
	return waitForNode(ctx, n, kwokName)
}
