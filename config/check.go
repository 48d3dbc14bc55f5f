package config

import (
	"errors"
	"math"
	"net"
	"slices"
	"strconv"

	"github.com/sirupsen/logrus"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/agynio/k8s-runner/workload"
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
	require(c.Kube.Namespace != "", "kube.namespace", "is required: the namespace in which workloads run")
	require(c.Kube.Namespace == "" || len(validation.IsDNS1123Label(c.Kube.Namespace)) == 0, "kube.namespace", "is not the name of a namespace")
	require(c.Kube.QPS > 0 && !math.IsInf(float64(c.Kube.QPS), 0), "kube.qps", "must be a number above zero")
	require(c.Kube.Burst > 0, "kube.burst", "must be above zero")
	_, levelErr := logrus.ParseLevel(c.Log.Level)
	require(levelErr == nil, "log.level", "is none of trace, debug, info, warn, error")
	require(slices.Contains([]string{"text", "json"}, c.Log.Format), "log.format", "is neither text nor json")
	require(c.Workload.FSGroup > 0, "workload.fs_group", "must be above zero")
	require(isSize(c.Volumes.Size), "volumes.size", "is not a quantity above zero, such as 10Gi")
	gatewayHost, gatewayOK := splitAddress(c.Gateway.Address)
	require(gatewayOK && gatewayHost != "", "gateway.address", "is not host:port, such as gateway:8080")
	require(c.Ziti.EnrollmentTimeout > 0, "ziti.enrollment_timeout", "must be above zero")
	return errors.Join(problems...)
}

// isSize reports whether s is a quantity above zero.
func isSize(s string) bool {
	if !workload.IsShortQuantity(s) {
		return false
	}
	q, err := resource.ParseQuantity(s)
	return err == nil && q.Sign() > 0
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
