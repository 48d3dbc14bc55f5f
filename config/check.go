package config

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/distribution/reference"
	"github.com/sirupsen/logrus"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/agynio/k8s-runner/quantity"
)

// check reports every setting that cannot be.
func (c *Config) check() error {
	var problems []error
	require := func(ok bool, key, problem string) {
		if !ok {
			problems = append(problems, named(key, problem))
		}
	}
	_, addressOK := splitAddress(c.GRPC.Address)
	require(addressOK, "grpc.address", "is not host:port, such as :50051")
	c.checkTLS(require)
	_, metricsOK := splitAddress(c.Metrics.Address)
	require(metricsOK || c.Metrics.Address == "", "metrics.address", "is neither host:port, such as :9090, nor empty")
	require(c.Traces.Endpoint == "" || isEndpoint(c.Traces.Endpoint), "traces.endpoint", "is neither a URL such as http://collector:4317 nor empty")
	require(c.Kube.Namespace != "", "kube.namespace", "is required: the namespace in which workloads run")
	require(c.Kube.Namespace == "" || len(validation.IsDNS1123Label(c.Kube.Namespace)) == 0, "kube.namespace", "is not the name of a namespace")
	require(c.Templates.Namespace == "" || len(validation.IsDNS1123Label(c.Templates.Namespace)) == 0, "templates.namespace", "is not the name of a namespace")
	for i, entry := range c.Templates.AllowedKinds {
		key := fmt.Sprintf("templates.allowed_kinds[%d]", i)
		problem := kindProblem(entry)
		require(problem == "", key, problem)
		require(!slices.Contains(c.Templates.AllowedKinds[:i], entry), key, "is there twice")
	}
	require(c.Kube.QPS > 0 && !math.IsInf(float64(c.Kube.QPS), 0), "kube.qps", "must be a number above zero")
	require(c.Kube.Burst > 0, "kube.burst", "must be above zero")
	_, levelErr := logrus.ParseLevel(c.Log.Level)
	require(levelErr == nil, "log.level", "is none of trace, debug, info, warn, error")
	require(slices.Contains([]string{"text", "json"}, c.Log.Format), "log.format", "is neither text nor json")
	require(c.Streams.PerWorkload > 0, "streams.per_workload", "must be above zero")
	require(c.Starts.Grace >= minGrace, "starts.grace", "must be at least 10s")
	require(c.Workload.FSGroup > 0 && c.Workload.FSGroup <= maxID, "workload.fs_group", "must be from 1 to 2147483647")
	require(c.Volumes.StorageClass == "" || len(validation.IsDNS1123Subdomain(c.Volumes.StorageClass)) == 0, "volumes.storage_class", "is not the name of a storage class")
	require(quantity.IsSize(c.Volumes.Size), "volumes.size", "is not a quantity above zero, such as 10Gi")
	size, sizeOK := quantity.Bytes(c.Archive.MaxSize)
	require(sizeOK && size > 0 && size <= maxArchive, "archive.max_size", "is not a quantity above zero and at most 1Gi, such as 64Mi")
	gatewayHost, gatewayOK := splitAddress(c.Gateway.Address)
	require(gatewayOK && gatewayHost != "", "gateway.address", "is not host:port, such as gateway:8080")
	require(c.Gateway.RunnerID == "" || runnerID.MatchString(c.Gateway.RunnerID), "gateway.runner_id", "is not an id of at most 128 letters, digits, '.', '_' and '-'")
	for _, name := range slices.Sorted(maps.Keys(c.Capabilities.Implementations)) {
		known, key := implementations()[name], "capabilities.implementations["+name+"]"
		require(len(known) > 0, key, "is not a capability with implementations; docker is")
		require(len(known) == 0 || slices.Contains(known, c.Capabilities.Implementations[name]), key, "is none of "+strings.Join(known, ", "))
	}
	require(isImage(c.Capabilities.DockerImage), "capabilities.docker_image", "is not an image reference")
	require(isImage(c.Capabilities.DockerRootlessImage), "capabilities.docker_rootless_image", "is not an image reference")
	require(slices.Contains([]string{ProfileDefault, ProfileRestricted}, c.Security.Profile), "security.profile", "is neither default nor restricted")
	for _, name := range c.Security.AllowedCapabilities {
		require(linuxCapability.MatchString(name), "security.allowed_capabilities", "has an entry that is not a Linux capability such as NET_ADMIN")
		require(!strings.HasPrefix(name, "CAP_"), "security.allowed_capabilities", "has an entry that starts with CAP_; Kubernetes' names are without, such as NET_ADMIN")
	}
	for _, name := range c.Security.AllowedPrivileges {
		require(slices.Contains(privileges(), name), "security.allowed_privileges", "has an entry that is none of "+strings.Join(privileges(), ", "))
	}
	require(c.Security.RunAsUser >= 0 && c.Security.RunAsUser <= maxID, "security.run_as_user", "must be from 0 to 2147483647")
	for _, cidr := range c.NetworkPolicy.EgressCIDRs {
		prefix, err := netip.ParsePrefix(cidr)
		require(err == nil && prefix == prefix.Masked(), "network_policy.egress_cidrs", "has an entry that is not a network such as 10.0.0.0/8")
	}
	require(len(c.NetworkPolicy.EgressCIDRs) == 0 || c.NetworkPolicy.Enabled, "network_policy.egress_cidrs", "has no effect unless network_policy.enabled is true")
	require(c.Ziti.EnrollmentTimeout > 0, "ziti.enrollment_timeout", "must be above zero")
	return errors.Join(problems...)
}

// maxArchive is what one message can hold, with room to spare, in bytes.
const maxArchive = 1 << 30

// minGrace is longer than a start takes whose API server is slow.
const minGrace = 10 * time.Second

// maxID is the largest user or group id that Kubernetes takes.
const maxID = math.MaxInt32

var runnerID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

var linuxCapability = regexp.MustCompile(`^[A-Z][A-Z0-9_]{1,31}$`)

// privileges lists what security.allowed_privileges may hold.
func privileges() []string {
	return []string{"capabilities", "host-namespaces", "host-path", "host-port", "privileged", "sysctls", "unconfined"}
}

// implementations lists those of each capability.
func implementations() map[string][]string {
	return map[string][]string{"docker": {"rootless", "privileged", "kata-qemu", "kata-fc"}}
}

func isImage(ref string) bool {
	_, err := reference.ParseNormalizedNamed(ref)
	return err == nil
}

// isEndpoint reports whether s is http://host:port, or https.
func isEndpoint(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.User == nil && strings.Trim(u.Path, "/") == ""
}

// splitAddress returns the host of host:port, in which the host may be empty.
func splitAddress(address string) (host string, ok bool) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return host, err == nil
}
