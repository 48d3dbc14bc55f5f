package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Addresses and names inside the node's network namespace. They are the same
// for every cluster: no two of them share a namespace.
const (
	nodeName    = "devnode"
	bridgeName  = "devk8s0"       // bridge of the Pods
	nodeIP      = "10.244.0.1"    // the bridge's own address: API server, kubelet, gateway of the Pods
	podCIDR     = "10.244.0.0/16" // all Pods
	nodeCIDR    = "10.244.0.0/24" // Pods of the only node
	serviceCIDR = "10.96.0.0/16"
	serviceIP   = "10.96.0.1" // the Service "kubernetes"
	apiAddr     = nodeIP + ":6443"
	mirrorAddr  = "127.0.0.1:5001" // stands in for every public registry
	privateAddr = "127.0.0.1:5000" // asks for a password
	privateUser = "dev"
	privatePass = "devpass"
)

// settings is what differs between two clusters of one machine.
type settings struct {
	Dir        string // state directory
	APIPort    int    // on 127.0.0.1 of the host
	MirrorPort int    // on 127.0.0.1 of the host
	Simulated  bool   // control plane and kwok only
}

func loadSettings() (settings, error) {
	dir := os.Getenv("DEVCLUSTER_DIR")
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return settings{}, fmt.Errorf("finding a place for the state (set DEVCLUSTER_DIR): %w", err)
		}
		dir = filepath.Join(cache, "k8s-runner", "devcluster")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return settings{}, fmt.Errorf("making DEVCLUSTER_DIR absolute: %w", err)
	}
	for _, taken := range []string{"/run", "/var/run", "/var/log", "/proc", "/sys"} {
		if strings.HasPrefix(dir+"/", taken+"/") {
			return settings{}, fmt.Errorf("DEVCLUSTER_DIR=%s: the node has a %s of its own and would not find it", dir, taken)
		}
	}
	s := settings{Dir: dir}
	if s.APIPort, err = portFromEnv("DEVCLUSTER_API_PORT", 16443); err != nil {
		return settings{}, err
	}
	if s.MirrorPort, err = portFromEnv("DEVCLUSTER_MIRROR_PORT", 15001); err != nil {
		return settings{}, err
	}
	return s, nil
}

func portFromEnv(name string, preset int) (int, error) {
	v := os.Getenv(name)
	if v == "" {
		return preset, nil
	}
	port, err := strconv.Atoi(v)
	if err != nil || port < 1 || port > 65535 {
		return 0, fmt.Errorf("%s=%q is not a port", name, v)
	}
	return port, nil
}

// path names a file of the state directory.
func (s settings) path(elem ...string) string {
	return filepath.Join(append([]string{s.Dir}, elem...)...)
}

// bin, data, etc, log and run are the folders of the state directory. Only
// bin outlives a teardown; log is kept until the next start.
func (s settings) bin(name string) string  { return s.path("bin", name) }
func (s settings) data(name string) string { return s.path("data", name) }
func (s settings) etc(name string) string  { return s.path("etc", name) }
func (s settings) log(name string) string  { return s.path("log", name+".log") }
func (s settings) run(name string) string  { return s.path("run", name) }
func (s settings) pki(name string) string  { return s.path("etc", "pki", name) }

func (s settings) kubeconfig() string { return s.path("kubeconfig") }

// hostAPI is where the machine itself reaches the API server.
func (s settings) hostAPI() string { return fmt.Sprintf("127.0.0.1:%d", s.APIPort) }

// hostMirror is where the machine itself reaches the registry of public images.
func (s settings) hostMirror() string { return fmt.Sprintf("127.0.0.1:%d", s.MirrorPort) }

// internalAPI is where the components reach the API server.
func (s settings) internalAPI() string {
	if s.Simulated {
		return s.hostAPI()
	}
	return apiAddr
}

// mode is the word that every output uses.
func (s settings) mode() string {
	if s.Simulated {
		return "simulated"
	}
	return "real"
}
