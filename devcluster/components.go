package main

import "fmt"

// component is one process of the cluster. Its name is the first word of its
// command line, so ps shows what it is, whichever binary it runs.
type component struct {
	name string
	bin  string // file of the bin folder
	args []string
}

const (
	etcdName       = "etcd"
	apiServerName  = "kube-apiserver"
	containerdName = "containerd"
	kubeletName    = "kubelet"
	mirrorName     = "mirror"
	registryName   = "registry"
	forwardAPI     = "forward-api"
	forwardMirror  = "forward-mirror"
	kwokName       = "kwok"
)

// componentNames lists the processes that a healthy cluster has.
func componentNames(s settings) []string {
	control := []string{etcdName, apiServerName, "kube-controller-manager", "kube-scheduler"}
	if s.Simulated {
		return append(control, kwokName)
	}
	return append(control, containerdName, kubeletName, "kube-proxy", "netpol", "provisioner",
		mirrorName, registryName, forwardAPI, forwardMirror)
}

// etcdAddrs are the client's and the peer's. In the simulated mode nothing is
// private, so they follow the one port that can be chosen.
func etcdAddrs(s settings) (client, peer string) {
	if s.Simulated {
		return fmt.Sprintf("127.0.0.1:%d", s.APIPort+1), fmt.Sprintf("127.0.0.1:%d", s.APIPort+2)
	}
	return "127.0.0.1:2379", "127.0.0.1:2380"
}

func etcd(s settings) component {
	client, peer := etcdAddrs(s)
	return component{etcdName, "kube", []string{
		"--name=dev", "--data-dir=" + s.data("etcd"), "--log-level=warn",
		"--unsafe-no-fsync", // its data does not outlive the processes
		"--listen-client-urls=http://" + client, "--advertise-client-urls=http://" + client,
		"--listen-peer-urls=http://" + peer, "--initial-advertise-peer-urls=http://" + peer,
		"--initial-cluster=dev=http://" + peer,
	}}
}

func apiServer(s settings) component {
	client, _ := etcdAddrs(s)
	where := []string{"--bind-address=" + nodeIP, "--advertise-address=" + nodeIP, "--secure-port=6443"}
	if s.Simulated {
		where = []string{"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", s.APIPort),
			"--endpoint-reconciler-type=none"} // loopback is no address of an endpoint
	}
	return component{apiServerName, "kube", append(where,
		"--etcd-servers=http://"+client,
		"--service-cluster-ip-range="+serviceCIDR,
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true", "--profiling=false",
		"--client-ca-file="+s.pki("ca.crt"),
		"--tls-cert-file="+s.pki("apiserver.crt"), "--tls-private-key-file="+s.pki("apiserver.key"),
		"--kubelet-certificate-authority="+s.pki("ca.crt"),
		"--kubelet-client-certificate="+s.pki("apiserver-kubelet-client.crt"),
		"--kubelet-client-key="+s.pki("apiserver-kubelet-client.key"),
		"--kubelet-preferred-address-types=InternalIP",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file="+s.pki("sa.pub"), "--service-account-signing-key-file="+s.pki("sa.key"),
		"--audit-policy-file="+s.etc("audit.yaml"), "--audit-log-path="+s.log("audit"),
		"--audit-log-maxsize=200", "--audit-log-maxbackup=1",
	)}
}

// controllers are the controller manager and the scheduler.
func controllers(s settings) []component {
	port := func(real int) string {
		if s.Simulated {
			real = 0 // does not listen: on the host it might be somebody else's
		}
		return fmt.Sprintf("--secure-port=%d", real)
	}
	manager, scheduler := s.pki("controller-manager.kubeconfig"), s.pki("scheduler.kubeconfig")
	return []component{
		{"kube-controller-manager", "kube", []string{
			"--kubeconfig=" + manager, "--authentication-kubeconfig=" + manager, "--authorization-kubeconfig=" + manager,
			"--bind-address=127.0.0.1", port(10257), "--leader-elect=false",
			"--use-service-account-credentials=true",
			"--service-account-private-key-file=" + s.pki("sa.key"), "--root-ca-file=" + s.pki("ca.crt"),
			"--cluster-signing-cert-file=" + s.pki("ca.crt"), "--cluster-signing-key-file=" + s.pki("ca.key"),
			"--allocate-node-cidrs=true", "--cluster-cidr=" + podCIDR, "--node-cidr-mask-size=24",
			"--service-cluster-ip-range=" + serviceCIDR,
			"--kube-api-qps=200", "--kube-api-burst=400",
		}},
		{"kube-scheduler", "kube", []string{
			"--kubeconfig=" + scheduler, "--authentication-kubeconfig=" + scheduler, "--authorization-kubeconfig=" + scheduler,
			"--bind-address=127.0.0.1", port(10259), "--leader-elect=false",
			"--kube-api-qps=500", "--kube-api-burst=1000",
		}},
	}
}

func registries(s settings) []component {
	return []component{
		{mirrorName, "tools", []string{"registry", "-addr", mirrorAddr, "-blobs", s.data("blobs")}},
		{registryName, "tools", []string{"registry", "-addr", privateAddr, "-user", privateUser, "-pass", privatePass}},
	}
}

func containerd(s settings) component {
	return component{containerdName, "containerd", []string{"-c", s.etc("containerd.toml"), "--log-level", "warn"}}
}

// nodeAgents are what watches the API server on behalf of the node.
func nodeAgents(s settings) []component {
	return []component{
		{kubeletName, "kube", []string{
			"--config=" + s.etc("kubelet.yaml"), "--kubeconfig=" + s.pki("kubelet.kubeconfig"),
			"--root-dir=" + s.data("kubelet"), "--cert-dir=" + s.data("kubelet-certs"),
			"--hostname-override=" + nodeName, "--node-ip=" + nodeIP, "--v=1",
		}},
		{"kube-proxy", "kube", []string{"--config=" + s.etc("kube-proxy.yaml")}},
		{"netpol", "tools", []string{"netpol", "-kubeconfig", s.pki("admin.kubeconfig"), "-node", nodeName, "-service-cidr", serviceCIDR}},
		{"provisioner", "tools", []string{"provisioner", "-kubeconfig", s.pki("admin.kubeconfig"), "-root", s.data("pv"), "-node", nodeName}},
	}
}
