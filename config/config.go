// Package config reads the settings of the runner: defaults, then a file, then
// the environment, then flags, each overriding the one before. What it does
// not know it refuses.
package config

import (
	"time"

	"github.com/agynio/k8s-runner/quantity"
)

// Config holds every setting. The koanf tags are the keys of the file.
type Config struct {
	GRPC         GRPC         `koanf:"grpc"`
	TLS          TLS          `koanf:"tls"`
	Metrics      Metrics      `koanf:"metrics"`
	Traces       Traces       `koanf:"traces"`
	Kube         Kube         `koanf:"kube"`
	Log          Log          `koanf:"log"`
	Streams      Streams      `koanf:"streams"`
	Starts       Starts       `koanf:"starts"`
	Workload     Workload     `koanf:"workload"`
	Catalog      Catalog      `koanf:"catalog"`
	Templates    Templates    `koanf:"templates"`
	Volumes      Volumes      `koanf:"volumes"`
	Archive      Archive      `koanf:"archive"`
	Gateway      Gateway      `koanf:"gateway"`
	Ziti         Ziti         `koanf:"ziti"`
	Capabilities Capabilities `koanf:"capabilities"`
	Security     Security     `koanf:"security"`
	// NetworkPolicy is one for each workload, beside those of the namespace.
	NetworkPolicy NetworkPolicy `koanf:"network_policy"`
}

// GRPC is the API that the runner serves.
type GRPC struct {
	// Address is host:port to listen on.
	Address string `koanf:"address"`
	// Plaintext lets it be served without TLS beyond loopback.
	Plaintext bool `koanf:"plaintext"`
}

// TLS holds the PEM files of the server; without any there is no TLS.
type TLS struct {
	// Cert is the certificate, with those between it and its root.
	Cert string `koanf:"cert"`
	// Key is the private key of Cert.
	Key string `koanf:"key"`
	// ClientCA signs the certificates of callers; empty means that they need none.
	ClientCA string `koanf:"client_ca"`
}

// Metrics is what a monitoring system and the kubelet ask, over HTTP.
type Metrics struct {
	// Address is host:port to listen on; empty means nothing listens.
	Address string `koanf:"address"`
}

// Traces are OpenTelemetry's.
type Traces struct {
	// Endpoint is the URL of an OTLP collector's gRPC; empty means there are none.
	Endpoint string `koanf:"endpoint"`
}

// Kube is the cluster.
type Kube struct {
	// Namespace is where workloads run. Required.
	Namespace string `koanf:"namespace"`
	// Kubeconfig is a file; empty means the Pod's service account, or else
	// what kubectl would use.
	Kubeconfig string `koanf:"kubeconfig"`
	// QPS and Burst bound the requests to the API server. client-go's default
	// of 5 a second would be about one start a second.
	QPS   float32 `koanf:"qps"`
	Burst int     `koanf:"burst"`
}

// Log is the runner's own log.
type Log struct {
	// Level is one of logrus' levels.
	Level string `koanf:"level"`
	// Format is text or json.
	Format string `koanf:"format"`
}

// Streams are the calls that last: logs, events, commands.
type Streams struct {
	// PerWorkload bounds those of one workload at a time.
	PerWorkload int `koanf:"per_workload"`
}

// Starts are the calls that start workloads.
type Starts struct {
	// Grace is how long one may stay unfinished before its Pod is taken away.
	Grace time.Duration `koanf:"grace"`
}

// Workload holds what is the same for every workload.
type Workload struct {
	// FSGroup is the group id that owns a Pod's volumes.
	FSGroup int64 `koanf:"fs_group"`
}

// Catalog is the list of flavors, storage classes and capabilities.
type Catalog struct {
	Path string `koanf:"path"`
}

// Templates are the operator's, in ConfigMaps.
type Templates struct {
	// Namespace is where the ConfigMaps are; empty means that of the workloads.
	Namespace string `koanf:"namespace"`
	// AllowedKinds are what templates may make beside the Pod, its Secrets, policies
	// and claims, such as "v1 ConfigMap".
	AllowedKinds []string `koanf:"allowed_kinds"`
}

// Volumes holds the defaults of claims.
type Volumes struct {
	StorageClass string `koanf:"storage_class"`
	// Size is a Kubernetes quantity.
	Size string `koanf:"size"`
}

// Archive bounds what PutArchive takes.
type Archive struct {
	// MaxSize is a Kubernetes quantity.
	MaxSize string `koanf:"max_size"`
}

// Bytes is MaxSize in bytes.
func (a Archive) Bytes() int64 {
	n, _ := quantity.Bytes(a.MaxSize)
	return n
}

// Gateway is the platform's.
type Gateway struct {
	Address string `koanf:"address"`
	// ServiceToken enrols the runner. Secret.
	ServiceToken string `koanf:"service_token"`
	TLS          bool   `koanf:"tls"`
	// CA is a PEM file that signs the gateway's certificate; empty means the
	// system's roots.
	CA string `koanf:"ca"`
	// RunnerID is the runner's name in the platform; empty means the one that the
	// enrolment gives.
	RunnerID string `koanf:"runner_id"`
}

// InPlatform reports whether the runner is part of a platform: it enrols and
// reports to the gateway.
func (c Config) InPlatform() bool { return c.Gateway.ServiceToken != "" }

// Ziti is the overlay.
type Ziti struct {
	Enabled           bool          `koanf:"enabled"`
	EnrollmentTimeout time.Duration `koanf:"enrollment_timeout"`
	// IdentityFile keeps the identity between starts; empty means that memory does.
	IdentityFile string `koanf:"identity_file"`
}

// Capabilities says how the capabilities of the catalog are implemented.
type Capabilities struct {
	// Implementations maps a capability to the name of its implementation.
	Implementations map[string]string `koanf:"implementations"`
	// DockerImage and DockerRootlessImage are those of the Docker daemon; the
	// second one is for the implementation rootless.
	DockerImage         string `koanf:"docker_image"`
	DockerRootlessImage string `koanf:"docker_rootless_image"`
}

// Profiles of security.
const (
	ProfileDefault = "default"
	// ProfileRestricted makes Pods that Kubernetes' restricted level admits.
	ProfileRestricted = "restricted"
)

// Security bounds what a workload may do.
type Security struct {
	// Profile is one of the profiles above.
	Profile string `koanf:"profile"`
	// AllowedCapabilities are the Linux capabilities that a request may add.
	AllowedCapabilities []string `koanf:"allowed_capabilities"`
	// AllowedPrivileges are the ways out of a Pod that a template may use, such as
	// host-path; a request never can.
	AllowedPrivileges []string `koanf:"allowed_privileges"`
	// RunAsUser is the user id of every process; 0 means the image's own.
	RunAsUser int64 `koanf:"run_as_user"`
}

// NetworkPolicy makes each workload a policy that is there before its first
// process and refuses every connection from outside.
type NetworkPolicy struct {
	Enabled bool `koanf:"enabled"`
	// EgressCIDRs are all that the workload reaches, beside the cluster's DNS;
	// without any the policy leaves egress to other policies.
	EgressCIDRs []string `koanf:"egress_cidrs"`
}

// Default returns the settings that hold where nothing else is said.
func Default() Config {
	return Config{
		GRPC:      GRPC{Address: ":50051"},
		Streams:   Streams{PerWorkload: 256},
		Starts:    Starts{Grace: 2 * time.Minute},
		Archive:   Archive{MaxSize: "64Mi"},
		Metrics:   Metrics{Address: ":9090"},
		Kube:      Kube{QPS: 500, Burst: 1000},
		Log:       Log{Level: "info", Format: "text"},
		Workload:  Workload{FSGroup: 1000},
		Templates: Templates{AllowedKinds: []string{}},
		Volumes:   Volumes{Size: "10Gi"},
		Gateway:   Gateway{Address: "gateway:8080"},
		Ziti:      Ziti{EnrollmentTimeout: 2 * time.Minute},
		Capabilities: Capabilities{
			DockerImage: "docker:27-dind", DockerRootlessImage: "docker:27-dind-rootless",
		},
		Security:      Security{Profile: ProfileDefault, AllowedCapabilities: allowedCapabilities(), AllowedPrivileges: []string{}},
		NetworkPolicy: NetworkPolicy{EgressCIDRs: []string{}},
	}
}

// allowedCapabilities are those that Kubernetes' baseline level lets a Pod add,
// and NET_ADMIN for a platform's network sidecar.
func allowedCapabilities() []string {
	return []string{
		"AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_ADMIN", "NET_BIND_SERVICE",
		"SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
	}
}
