package config

// setting is one key with its names outside the file.
type setting struct {
	// key is the path in the file.
	key string
	// env is the environment variable. Those without the prefix K8SRUNNER_
	// are the names of existing deployments.
	env string
	// usage is the flag's help.
	usage string
	// secret values are never shown, and have no flag: flags are visible to
	// every process of the machine.
	secret bool
}

// envPrefix starts the variables that belong to the runner alone. It differs
// from what Kubernetes sets for a Service called k8s-runner (K8S_RUNNER_…).
const envPrefix = "K8SRUNNER_"

// settings is the one table of names; flags, environment and help follow it.
func settings() []setting {
	return []setting{
		{key: "grpc.address", env: "GRPC_ADDR", usage: "host:port to serve the API on"},
		{key: "grpc.plaintext", env: "K8SRUNNER_GRPC_PLAINTEXT", usage: "serve without TLS on an address that is not on loopback"},
		{key: "tls.cert", env: "K8SRUNNER_TLS_CERT", usage: "PEM file of the server's certificate"},
		{key: "tls.key", env: "K8SRUNNER_TLS_KEY", usage: "PEM file of its private key"},
		{key: "tls.client_ca", env: "K8SRUNNER_TLS_CLIENT_CA", usage: "PEM file of the authorities whose certificates callers need (default: they need none)"},
		{key: "metrics.address", env: "METRICS_ADDRESS", usage: "host:port to serve metrics and probes on; empty serves none"},
		{key: "traces.endpoint", env: "OTEL_EXPORTER_OTLP_ENDPOINT", usage: "URL of an OTLP collector's gRPC to send traces to; empty sends none"},
		{key: "kube.namespace", env: "KUBE_NAMESPACE", usage: "namespace in which workloads run (required)"},
		{key: "kube.kubeconfig", env: "K8SRUNNER_KUBE_KUBECONFIG", usage: "kubeconfig file (default: the Pod's service account, or what kubectl uses)"},
		{key: "kube.qps", env: "K8SRUNNER_KUBE_QPS", usage: "requests a second to the API server"},
		{key: "kube.burst", env: "K8SRUNNER_KUBE_BURST", usage: "requests to the API server at once"},
		{key: "log.level", env: "LOG_LEVEL", usage: "trace, debug, info, warn or error"},
		{key: "log.format", env: "K8SRUNNER_LOG_FORMAT", usage: "text or json"},
		{key: "streams.per_workload", env: "K8SRUNNER_STREAMS_PER_WORKLOAD", usage: "streams of one workload at a time"},
		{key: "starts.grace", env: "K8SRUNNER_STARTS_GRACE", usage: "how long a start may stay unfinished before its Pod is taken away"},
		{key: "workload.fs_group", env: "K8SRUNNER_WORKLOAD_FS_GROUP", usage: "group id that owns a Pod's volumes"},
		{key: "catalog.path", env: "CATALOG_PATH", usage: "file of flavors, storage classes and capabilities"},
		{key: "templates.namespace", env: "K8SRUNNER_TEMPLATES_NAMESPACE", usage: "namespace of the ConfigMaps with the operator's templates (default: that of the workloads)"},
		{key: "templates.allowed_kinds", env: "K8SRUNNER_TEMPLATES_ALLOWED_KINDS", usage: "kinds that templates may make for a workload, such as v1 ConfigMap, with commas between"},
		{key: "volumes.storage_class", env: "PVC_STORAGE_CLASS", usage: "storage class of claims for which the catalog names none"},
		{key: "volumes.size", env: "PVC_STORAGE_SIZE", usage: "size of claims for which the request names none"},
		{key: "archive.max_size", env: "K8SRUNNER_ARCHIVE_MAX_SIZE", usage: "largest archive that PutArchive takes"},
		{key: "gateway.address", env: "GATEWAY_ADDRESS", usage: "host:port of the platform's gateway"},
		{key: "gateway.service_token", env: "SERVICE_TOKEN", secret: true},
		{key: "gateway.tls", env: "K8SRUNNER_GATEWAY_TLS", usage: "use TLS to the gateway"},
		{key: "gateway.ca", env: "K8SRUNNER_GATEWAY_CA", usage: "PEM file of the authorities of the gateway's certificate (default: the system's)"},
		{key: "gateway.runner_id", env: "K8SRUNNER_RUNNER_ID", usage: "id of the runner in the platform (default: what the enrolment says)"},
		{key: "ziti.enabled", env: "ZITI_ENABLED", usage: "serve on the overlay"},
		{key: "ziti.enrollment_timeout", env: "ZITI_ENROLLMENT_TIMEOUT", usage: "longest time for the enrolment"},
		{key: "ziti.identity_file", env: "K8SRUNNER_ZITI_IDENTITY_FILE", usage: "file that keeps the overlay's identity between starts (default: memory alone)"},
		{key: "capabilities.implementations", env: "CAPABILITY_IMPLEMENTATIONS", usage: `JSON, such as {"docker":"rootless"}`},
		{key: "capabilities.docker_image", env: "K8SRUNNER_DOCKER_IMAGE", usage: "image of the Docker daemon"},
		{key: "capabilities.docker_rootless_image", env: "K8SRUNNER_DOCKER_ROOTLESS_IMAGE", usage: "image of the rootless Docker daemon"},
		{key: "security.profile", env: "K8SRUNNER_SECURITY_PROFILE", usage: "default or restricted"},
		{key: "security.allowed_capabilities", env: "K8SRUNNER_ALLOWED_CAPABILITIES", usage: "Linux capabilities that a request may add, with commas between"},
		{key: "security.allowed_privileges", env: "K8SRUNNER_ALLOWED_PRIVILEGES", usage: "ways out of a Pod that templates may use, such as host-path, with commas between"},
		{key: "security.run_as_user", env: "K8SRUNNER_RUN_AS_USER", usage: "user id of every process; 0 means the image's own"},
		{key: "network_policy.enabled", env: "K8SRUNNER_NETWORK_POLICY", usage: "make each workload a network policy that refuses connections to it"},
		{key: "network_policy.egress_cidrs", env: "K8SRUNNER_NETWORK_POLICY_EGRESS_CIDRS", usage: "all that a workload reaches beside DNS, with commas between"},
	}
}
