package main

import (
	"bytes"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"text/template"
)

//go:embed config
var configFS embed.FS

// configData is what the templates of config/ may use.
type configData struct {
	Bin, Data, Etc, Run, PKI                    string
	Bridge, NodeName, NodeIP, NodeCIDR, PodCIDR string
	CgroupRoot                                  string
	Registry                                    string   // hosts.toml only
	RuntimeHandlers                             []string // one RuntimeClass each may name them
}

func newConfigData(s settings) configData {
	return configData{
		Bin: s.path("bin"), Data: s.path("data"), Etc: s.path("etc"), Run: s.path("run"), PKI: s.path("etc", "pki"),
		Bridge: bridgeName, NodeName: nodeName, NodeIP: nodeIP, NodeCIDR: nodeCIDR, PodCIDR: podCIDR,
		CgroupRoot:      "/" + s.cgroupName(),
		RuntimeHandlers: []string{"runc", "alt"},
	}
}

// writeConfig renders the files of config/ into the etc folder. It must be done
// before anything starts: kube-proxy exits when its file is written anew.
func writeConfig(s settings) error {
	data := newConfigData(s)
	public, private := data, data
	public.Registry, private.Registry = mirrorAddr, privateAddr
	for _, f := range []struct {
		from, to string
		data     configData
	}{
		{"kubelet.yaml", "kubelet.yaml", data},
		{"containerd.toml", "containerd.toml", data},
		{"kube-proxy.yaml", "kube-proxy.yaml", data},
		{"crictl.yaml", "crictl.yaml", data},
		{"audit.yaml", "audit.yaml", data},
		{"resolv.conf", "resolv.conf", data},
		{"cni.conflist", "cni/10-devcluster.conflist", data},
		{"hosts.toml", "certs.d/_default/hosts.toml", public},
		{"hosts.toml", "certs.d/" + privateAddr + "/hosts.toml", private},
	} {
		text, err := render(f.from, f.data)
		if err != nil {
			return err
		}
		path := s.etc(f.to)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func render(name string, data configData) ([]byte, error) {
	t, err := template.New(name).Option("missingkey=error").ParseFS(configFS, "config/"+name)
	if err != nil {
		return nil, fmt.Errorf("reading the template %s: %w", name, err)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, data); err != nil {
		return nil, fmt.Errorf("rendering %s: %w", name, err)
	}
	return b.Bytes(), nil
}
