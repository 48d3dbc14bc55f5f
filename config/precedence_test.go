package config

import (
	"github.com/spf13/pflag"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// values has three values for each setting and reads it back.
func values() map[string]struct {
	of   [3]string
	read func(Config) any
	want [3]any
} {
	type row = struct {
		of   [3]string
		read func(Config) any
		want [3]any
	}
	text := func(a, b, c string, read func(Config) any) row { return row{[3]string{a, b, c}, read, [3]any{a, b, c}} }
	truth := func(read func(Config) any) row {
		return row{[3]string{"true", "false", "1"}, read, [3]any{true, false, true}}
	}
	return map[string]row{
		"grpc.address":            text(":1", ":2", "127.0.0.1:3", func(c Config) any { return c.GRPC.Address }),
		"grpc.plaintext":          truth(func(c Config) any { return c.GRPC.Plaintext }),
		"tls.cert":                text("/a", "/b", "/c", func(c Config) any { return c.TLS.Cert }),
		"tls.key":                 text("/a", "/b", "/c", func(c Config) any { return c.TLS.Key }),
		"tls.client_ca":           text("/a", "/b", "/c", func(c Config) any { return c.TLS.ClientCA }),
		"metrics.address":         text(":1", ":2", "127.0.0.1:3", func(c Config) any { return c.Metrics.Address }),
		"kube.namespace":          text("a", "b", "c", func(c Config) any { return c.Kube.Namespace }),
		"kube.kubeconfig":         text("/a", "/b", "/c", func(c Config) any { return c.Kube.Kubeconfig }),
		"kube.qps":                {[3]string{"1", "2.5", "3e2"}, func(c Config) any { return c.Kube.QPS }, [3]any{float32(1), float32(2.5), float32(300)}},
		"streams.per_workload":    {[3]string{"1", "2", "3"}, func(c Config) any { return c.Streams.PerWorkload }, [3]any{1, 2, 3}},
		"kube.burst":              {[3]string{"1", "2", "3"}, func(c Config) any { return c.Kube.Burst }, [3]any{1, 2, 3}},
		"log.level":               text("debug", "warn", "error", func(c Config) any { return c.Log.Level }),
		"log.format":              text("json", "text", "json", func(c Config) any { return c.Log.Format }),
		"traces.endpoint":         {[3]string{"http://a:1", "https://b", "http://c:4317/"}, func(c Config) any { return c.Traces.Endpoint }, [3]any{"http://a:1", "https://b", "http://c:4317/"}},
		"starts.grace":            {[3]string{"10s", "2m", "3h"}, func(c Config) any { return c.Starts.Grace }, [3]any{10 * time.Second, 2 * time.Minute, 3 * time.Hour}},
		"workload.fs_group":       {[3]string{"1", "2", "2147483647"}, func(c Config) any { return c.Workload.FSGroup }, [3]any{int64(1), int64(2), int64(2147483647)}},
		"catalog.path":            text("/a", "/b", "/c", func(c Config) any { return c.Catalog.Path }),
		"volumes.storage_class":   text("a", "b", "c", func(c Config) any { return c.Volumes.StorageClass }),
		"volumes.size":            text("1Gi", "2Gi", "3Gi", func(c Config) any { return c.Volumes.Size }),
		"archive.max_size":        text("1Mi", "2Mi", "1Gi", func(c Config) any { return c.Archive.MaxSize }),
		"gateway.address":         text("a:1", "b:2", "c:3", func(c Config) any { return c.Gateway.Address }),
		"gateway.service_token":   text("a", "b", "", func(c Config) any { return c.Gateway.ServiceToken }),
		"gateway.tls":             truth(func(c Config) any { return c.Gateway.TLS }),
		"gateway.ca":              text("/a", "/b", "/c", func(c Config) any { return c.Gateway.CA }),
		"gateway.runner_id":       text("a", "5f0c7d1e-0000-4000-8000-000000000000", "C.d_1", func(c Config) any { return c.Gateway.RunnerID }),
		"ziti.enabled":            truth(func(c Config) any { return c.Ziti.Enabled }),
		"ziti.identity_file":      text("/a", "/b", "/c", func(c Config) any { return c.Ziti.IdentityFile }),
		"ziti.enrollment_timeout": {[3]string{"1s", "2m", "3h"}, func(c Config) any { return c.Ziti.EnrollmentTimeout }, [3]any{time.Second, 2 * time.Minute, 3 * time.Hour}},
		"capabilities.implementations": {
			[3]string{`{"docker":"rootless"}`, `{"docker":"privileged"}`, `{"docker":"kata-fc"}`},
			func(c Config) any { return c.Capabilities.Implementations },
			[3]any{map[string]string{"docker": "rootless"}, map[string]string{"docker": "privileged"}, map[string]string{"docker": "kata-fc"}},
		},
		"capabilities.docker_image":          text("a:1", "b/c", "d", func(c Config) any { return c.Capabilities.DockerImage }),
		"capabilities.docker_rootless_image": text("a:1", "b/c", "d", func(c Config) any { return c.Capabilities.DockerRootlessImage }),
		"templates.namespace":                text("a", "b", "c", func(c Config) any { return c.Templates.Namespace }),
		"templates.allowed_kinds": {
			[3]string{"[v1 ConfigMap]", "v1 Service, a.example/v1 Thing", "v1 ConfigMap"},
			func(c Config) any { return c.Templates.AllowedKinds },
			[3]any{[]string{"v1 ConfigMap"}, []string{"v1 Service", "a.example/v1 Thing"}, []string{"v1 ConfigMap"}},
		},
		"security.allowed_privileges": {
			[3]string{"[host-path]", "host-port", "privileged, sysctls"},
			func(c Config) any { return c.Security.AllowedPrivileges },
			[3]any{[]string{"host-path"}, []string{"host-port"}, []string{"privileged", "sysctls"}},
		},
		"security.profile": text("restricted", "default", "restricted", func(c Config) any { return c.Security.Profile }),
		"security.allowed_capabilities": {
			[3]string{"[NET_RAW, KILL]", "NET_ADMIN", "A_B, C_D"},
			func(c Config) any { return c.Security.AllowedCapabilities },
			[3]any{[]string{"NET_RAW", "KILL"}, []string{"NET_ADMIN"}, []string{"A_B", "C_D"}},
		},
		"security.run_as_user":   {[3]string{"1", "0", "2147483647"}, func(c Config) any { return c.Security.RunAsUser }, [3]any{int64(1), int64(0), int64(2147483647)}},
		"network_policy.enabled": truth(func(c Config) any { return c.NetworkPolicy.Enabled }),
		"network_policy.egress_cidrs": {
			[3]string{"[10.0.0.0/8]", "10.0.0.0/8,2001:db8::/32", "0.0.0.0/0"},
			func(c Config) any { return c.NetworkPolicy.EgressCIDRs },
			[3]any{[]string{"10.0.0.0/8"}, []string{"10.0.0.0/8", "2001:db8::/32"}, []string{"0.0.0.0/0"}},
		},
	}
}

// TestPrecedence makes each setting in each set of places: the last one counts,
// alone.
func TestPrecedence(t *testing.T) {
	all := values()
	for _, s := range settings() {
		v, known := all[s.key]
		if !known {
			t.Errorf("the test knows no values of %s", s.key)
			continue
		}
		t.Run(s.key, func(t *testing.T) {
			for places := range 8 {
				m := made{}
				var want any
				for i, place := range []source{inFile, inEnv, inFlag} {
					if places&(1<<i) == 0 || (place == inFlag && s.secret) {
						continue
					}
					m[place] = map[string]string{s.key: v.of[i]}
					want = v.want[i]
				}
				if want == nil {
					continue
				}
				c, err := load(t, m)
				if err != nil {
					t.Fatalf("%v: %v", m, err)
				}
				if diff := cmp.Diff(want, v.read(c)); diff != "" {
					t.Errorf("%v (-want +got):\n%s", m, diff)
				}
			}
		})
	}
}

func TestSecretsHaveNoFlag(t *testing.T) {
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	AddFlags(flags)
	if flags.Lookup("gateway-service-token") != nil || flags.Lookup("gateway-address") == nil {
		t.Error("the flags are those of all settings but the secret ones")
	}
	for _, s := range settings() {
		if s.key == "gateway.service_token" && !s.secret {
			t.Error("the service token is no secret")
		}
		if s.usage == "" && !s.secret {
			t.Errorf("%s has no help", s.key)
		}
	}
}

// TestDefaults has the names and defaults that existing deployments rely on.
func TestDefaults(t *testing.T) {
	names := map[string]string{
		"GRPC_ADDR": "grpc.address", "KUBE_NAMESPACE": "kube.namespace", "ZITI_ENABLED": "ziti.enabled",
		"GATEWAY_ADDRESS": "gateway.address", "SERVICE_TOKEN": "gateway.service_token", "ZITI_ENROLLMENT_TIMEOUT": "ziti.enrollment_timeout",
		"PVC_STORAGE_CLASS": "volumes.storage_class", "PVC_STORAGE_SIZE": "volumes.size", "CATALOG_PATH": "catalog.path",
		"CAPABILITY_IMPLEMENTATIONS": "capabilities.implementations", "LOG_LEVEL": "log.level",
		"K8SRUNNER_GRPC_PLAINTEXT": "grpc.plaintext", "K8SRUNNER_TLS_CERT": "tls.cert", "K8SRUNNER_TLS_KEY": "tls.key",
		"K8SRUNNER_TLS_CLIENT_CA": "tls.client_ca", "K8SRUNNER_GATEWAY_TLS": "gateway.tls", "K8SRUNNER_GATEWAY_CA": "gateway.ca",
		"K8SRUNNER_RUNNER_ID": "gateway.runner_id", "K8SRUNNER_ZITI_IDENTITY_FILE": "ziti.identity_file",
	}
	for env, key := range names {
		if got := envOf(t, key); got != env {
			t.Errorf("%s is read from %s instead of %s", key, got, env)
		}
	}
	got, err := check(t, Sources{Environ: []string{"KUBE_NAMESPACE=workloads", "PATH=/bin", "K8S_RUNNER_SERVICE_HOST=10.0.0.1", "HOME"}})
	if err != nil {
		t.Fatal(err)
	}
	want := Config{
		GRPC:      GRPC{Address: ":50051"},
		Streams:   Streams{PerWorkload: 256},
		Archive:   Archive{MaxSize: "64Mi"},
		Metrics:   Metrics{Address: ":9090"},
		Kube:      Kube{Namespace: "workloads", QPS: 500, Burst: 1000},
		Log:       Log{Level: "info", Format: "text"},
		Starts:    Starts{Grace: 2 * time.Minute},
		Workload:  Workload{FSGroup: 1000},
		Templates: Templates{AllowedKinds: []string{}},
		Volumes:   Volumes{Size: "10Gi"},
		Gateway:   Gateway{Address: "gateway:8080"},
		Ziti:      Ziti{EnrollmentTimeout: 2 * time.Minute},
		Capabilities: Capabilities{
			DockerImage: "docker:27-dind", DockerRootlessImage: "docker:27-dind-rootless",
		},
		Security: Security{Profile: "default", AllowedCapabilities: []string{
			"AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_ADMIN", "NET_BIND_SERVICE",
			"SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
		}, AllowedPrivileges: []string{}},
		NetworkPolicy: NetworkPolicy{EgressCIDRs: []string{}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
}

// TestNoMetrics: in the file and as a flag an empty address is one.
func TestNoMetrics(t *testing.T) {
	for _, place := range []source{inFile, inFlag} {
		value := map[source]string{inFile: `""`, inFlag: ""}[place]
		c, err := load(t, made{place: {"metrics.address": value}})
		if err != nil || c.Metrics.Address != "" {
			t.Errorf("in %s it makes %q, %v", place, c.Metrics.Address, err)
		}
	}
}

// TestEmptyVariablesAreUnset, as a Helm chart writes them for empty values.
func TestEmptyVariablesAreUnset(t *testing.T) {
	var environ []string
	for _, s := range settings() {
		if s.key != "kube.namespace" {
			environ = append(environ, s.env+"=")
		}
	}
	want, err := check(t, Sources{Environ: []string{"KUBE_NAMESPACE=workloads"}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := check(t, Sources{Environ: append(environ, "KUBE_NAMESPACE=workloads")})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestEmptySections are what is left when every line of one is a comment.
func TestEmptySections(t *testing.T) {
	var text string
	for _, section := range []string{"grpc", "tls", "metrics", "kube", "log", "workload", "catalog", "volumes", "gateway", "ziti", "capabilities", "security", "network_policy", "templates"} {
		text += section + ":\n"
	}
	for _, text := range []string{"", "# nothing\n", text, "log: {level: }\n"} {
		got, err := check(t, Sources{File: fileOf(t, text), Environ: []string{"KUBE_NAMESPACE=workloads"}})
		if err != nil {
			t.Fatal(err)
		}
		want := Default()
		want.Kube.Namespace = "workloads"
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}
