package config

import (
	"errors"
	"net"
	"slices"

	"github.com/sirupsen/logrus"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

// check reports every setting that cannot be.
func (c *Config) check() error {
	var problems []error
	require := func(ok bool, key, problem string) {
		if !ok {
			problems = append(problems, named(key, problem))
		}
	}
	_, _, addressErr := net.SplitHostPort(c.GRPC.Address)
	require(addressErr == nil, "grpc.address", "is not host:port, such as :50051")
	require(c.Kube.Namespace != "", "kube.namespace", "is required: the namespace in which workloads run")
	require(c.Kube.Namespace == "" || len(validation.IsDNS1123Label(c.Kube.Namespace)) == 0, "kube.namespace", "is not the name of a namespace")
	require(c.Kube.QPS > 0, "kube.qps", "must be above zero")
	require(c.Kube.Burst > 0, "kube.burst", "must be above zero")
	_, levelErr := logrus.ParseLevel(c.Log.Level)
	require(levelErr == nil, "log.level", "is none of trace, debug, info, warn, error")
	require(slices.Contains([]string{"text", "json"}, c.Log.Format), "log.format", "is neither text nor json")
	require(c.Workload.FSGroup > 0, "workload.fs_group", "must be above zero")
	size, sizeErr := resource.ParseQuantity(c.Volumes.Size)
	require(sizeErr == nil && size.Sign() > 0, "volumes.size", "is not a quantity above zero, such as 10Gi")
	_, _, gatewayErr := net.SplitHostPort(c.Gateway.Address)
	require(gatewayErr == nil, "gateway.address", "is not host:port, such as gateway:8080")
	require(c.Ziti.EnrollmentTimeout > 0, "ziti.enrollment_timeout", "must be above zero")
	return errors.Join(problems...)
}
