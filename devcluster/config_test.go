package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

func TestWriteConfig(t *testing.T) {
	s := settings{Dir: t.TempDir()}
	if err := writeConfig(s); err != nil {
		t.Fatal(err)
	}
	// file of the etc folder: words that other parts rely on
	files := map[string][]string{
		"kubelet.yaml":                      {"cgroupRoot: /" + s.cgroupName(), s.run("containerd.sock"), s.pki("kubelet.crt"), "address: 10.244.0.1"},
		"containerd.toml":                   {"runtimes.runc]", "runtimes.alt]", s.run("containerd.sock"), s.etc("certs.d"), s.bin("runc")},
		"kube-proxy.yaml":                   {s.pki("proxy.kubeconfig"), "hostnameOverride: devnode"},
		"audit.yaml":                        {"system:serviceaccounts:kube-system"},
		"resolv.conf":                       {"nameserver 10.244.0.1"},
		"cni/10-devcluster.conflist":        {bridgeName, nodeCIDR, s.data("ipam")},
		"certs.d/_default/hosts.toml":       {`[host."http://127.0.0.1:5001"]`},
		"certs.d/127.0.0.1:5000/hosts.toml": {`[host."http://127.0.0.1:5000"]`},
	}
	for name, words := range files {
		t.Run(name, func(t *testing.T) {
			b, err := os.ReadFile(s.etc(name))
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range words {
				if !strings.Contains(string(b), w) {
					t.Errorf("no %q in it", w)
				}
			}
			if strings.Contains(string(b), "{{") || strings.Contains(string(b), "<no value>") {
				t.Error("something is not filled in")
			}
		})
	}
	b, err := os.ReadFile(s.etc("cni/10-devcluster.conflist"))
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(b) {
		t.Error("the network's config is no JSON")
	}
}

func TestBaseObjectsAreThere(t *testing.T) {
	for _, simulated := range []bool{false, true} {
		for file := range baseObjects(settings{Simulated: simulated}) {
			if _, err := configFS.ReadFile("config/objects/" + file); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestCgroupNameIsTheDirectorys(t *testing.T) {
	a, b := settings{Dir: "/a"}, settings{Dir: "/b"}
	if a.cgroupName() == b.cgroupName() {
		t.Error("two clusters share a cgroup")
	}
	a.APIPort = 1
	if a.cgroupName() != (settings{Dir: "/a"}).cgroupName() {
		t.Error("another port makes another cgroup: the old one would never be removed")
	}
}
