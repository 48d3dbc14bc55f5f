package config

import (
	"slices"
	"strings"
	"testing"
)

// TestRefusesBadValues names the setting and its variable, whatever the place,
// and never repeats the value.
func TestRefusesBadValues(t *testing.T) {
	for key, bad := range map[string][]string{
		"grpc.address":                       {"50052", "localhost", ":", ":http", ":65536", "a:b:c", ":-1"},
		"grpc.plaintext":                     {"x", "yes", "2"},
		"metrics.address":                    {"9091", "localhost", ":", ":http", ":65536"},
		"kube.namespace":                     {"A", "a_b", "a b", "-a", strings.Repeat("a", 64)},
		"kube.qps":                           {"0", "-1", "many", "NaN", "Inf", "1,5", "true"},
		"streams.per_workload":               {"0", "-1", "many", "1.5"},
		"kube.burst":                         {"0", "-1", "many", "1.5", "1e3", "99999999999999999999"},
		"log.level":                          {"loud", "2"},
		"log.format":                         {"xml", "JSON"},
		"traces.endpoint":                    {"nohost:4317", "ftp://nohost", "http:///", "http://:4317", "http://u:p@nohost", "http://nohost/v1/traces"},
		"starts.grace":                       {"x", "20", "9.9s", "0s", "-1m", "2 m"},
		"workload.fs_group":                  {"0", "-1", "root", "1.5", "2147483648"},
		"volumes.storage_class":              {"A", "a_b", "a b", "-a", "a/b", strings.Repeat("a", 254)},
		"volumes.size":                       {"0", "-1Gi", "lots", "10GB", "10 Gi", "1e-99999999"},
		"archive.max_size":                   {"0", "-1Mi", "lots", "64MB", "1025Mi", "2Gi", "1e99", "0.5"},
		"gateway.address":                    {"nohost", ":8081", "nohost:", "nohost:http", "http://nohost:8081"},
		"gateway.tls":                        {"x", "yes", "2"},
		"gateway.runner_id":                  {"-a", "a b", "a/b", "runner\nid", "r\u00fcnner", strings.Repeat("a", 129)},
		"ziti.enabled":                       {"x", "yes", "2", "on"},
		"ziti.enrollment_timeout":            {"x", "2", "0s", "-1m", "2 m"},
		"capabilities.implementations":       {"x", "[]", `{"docker":1}`, `{"docker":null,"x":{}}`, `"x"`, "null", "1", `{"docker":"a"`, `{"docker":"a"}x`, `{"docker":["a"]}`, `{"docker":"podman"}`, `{"gpu":"rootless"}`, `{"docker":""}`},
		"capabilities.docker_image":          {"A:1", "a:", "https://a"},
		"capabilities.docker_rootless_image": {"A:1", "a:", "https://a"},
		"security.profile":                   {"none", "Restricted"},
		"security.allowed_capabilities":      {"net_admin", "NET_ADMIN;KILL", "NET-ADMIN", "CAP_NET_ADMIN", "NET_ADMIN,CAP_KILL"},
		"templates.namespace":                {"A", "a_b"},
		"templates.allowed_kinds":            {"Thing", "v1/Thing", "v1  ConfigMap", "v1 Config Map", "/v1 Thing", "A.example/v1 Thing", "a.example/V1 Thing", "a/b/v1 Thing", "v1 Config-Map", "v1 Service, v1 Service"},
		"security.allowed_privileges":        {"nothing", "Privileged", "host-path;host-port"},
		"security.run_as_user":               {"-1", "root", "1.5", "2147483648"},
		"network_policy.enabled":             {"x", "yes", "2"},
		"network_policy.egress_cidrs":        {"11.0.0.0", "10.0.0.1/8", "a/8", "10.0.0.0/33"},
	} {
		for _, value := range bad {
			t.Run(key+"="+value, func(t *testing.T) {
				for _, place := range []source{inEnv, inFlag} {
					_, err := load(t, made{place: {key: value}})
					wantNamed(t, place, err, key, value)
				}
			})
		}
	}
}

// TestSaysWhatImplementations: a capability that has none is told from a wrong
// one of docker.
func TestSaysWhatImplementations(t *testing.T) {
	for value, want := range map[string]string{
		`{"compute-resources":"x"}`: "[compute-resources] (environment CAPABILITY_IMPLEMENTATIONS) is not a capability with implementations",
		`{"gpu":"x"}`:               "[gpu] (environment CAPABILITY_IMPLEMENTATIONS) is not a capability with implementations",
		`{"docker":"podman"}`:       "[docker] (environment CAPABILITY_IMPLEMENTATIONS) is none of rootless, privileged,",
	} {
		_, err := load(t, made{inEnv: {"capabilities.implementations": value}})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Count(err.Error(), "CAPABILITY_IMPLEMENTATIONS") != 1 {
			t.Errorf("of %s the error is %v", value, err)
		}
	}
}

func wantNamed(t *testing.T, place source, err error, key, value string) {
	t.Helper()
	switch {
	case err == nil:
		t.Errorf("in %s it is accepted", place)
	case !strings.Contains(err.Error(), key) || !strings.Contains(err.Error(), envOf(t, key)):
		t.Errorf("in %s the error does not name the setting and its variable: %v", place, err)
	case len(value) > 3 && strings.Contains(err.Error(), value):
		t.Errorf("in %s the error repeats the value: %v", place, err)
	}
}

// TestRefusesOtherTypesOfTheFile: YAML knows types, and takes a token for a
// number.
func TestRefusesOtherTypesOfTheFile(t *testing.T) {
	for key, bad := range map[string][]string{
		"grpc.address":                  {"50051", "[':1']", "{a: b}"},
		"kube.qps":                      {"true", "[1]", "x"},
		"kube.burst":                    {"1.5", "true", "[1]"},
		"gateway.service_token":         {"0123", "[" + token + "]", "{" + token + ": " + token + "}", "true", "1.0"},
		"grpc.plaintext":                {"1", "[true]", "x"},
		"tls.cert":                      {"1", "[/cert]", "true"},
		"gateway.runner_id":             {"0123", "1", "true"},
		"ziti.enabled":                  {"1", "[true]", "x"},
		"ziti.enrollment_timeout":       {"5", "1.5", "[5s]", "5"},
		"capabilities.implementations":  {"[docker]", "{docker: 1}", "{docker: [a]}", "{docker: true}", "x"},
		"kube.namespace":                {"5", "true", "[a]", "{x: a}", "{}"},
		"security.allowed_capabilities": {"[1]", "{a: b}", "true"},
		"templates.allowed_kinds":       {"[1]", "{v1: ConfigMap}", "[[v1 ConfigMap]]", "true"},
		"security.run_as_user":          {"1.5", "true", "[1]"},
		"network_policy.egress_cidrs":   {"[1]", "{a: b}", "5"},
	} {
		for _, value := range bad {
			t.Run(key+"="+value, func(t *testing.T) {
				_, err := load(t, made{inFile: {key: value}})
				wantNamed(t, inFile, err, key, "")
			})
		}
	}
}

// TestRefusesAllAtOnce has several wrong settings, of the wrong type and of the
// wrong value.
func TestRefusesAllAtOnce(t *testing.T) {
	for _, keys := range []map[string]string{
		{"kube.qps": "x", "kube.burst": "y", "ziti.enabled": "z"},
		{"log.level": "x", "log.format": "y", "grpc.address": "z", "kube.namespace": "A"},
	} {
		_, err := load(t, made{inEnv: keys})
		for key := range keys {
			wantNamed(t, inEnv, err, key, "")
		}
	}
}

func TestNamespaceIsRequired(t *testing.T) {
	_, err := check(t, Sources{})
	wantNamed(t, inEnv, err, "kube.namespace", "")
}

func TestRefusesUnknownNames(t *testing.T) {
	for name, from := range map[string]Sources{
		"nothing":                  {File: fileOf(t, "nothing: 1")},
		"kube.name":                {File: fileOf(t, "kube: {name: a}")},
		"empty":                    {File: fileOf(t, "empty: {}")},
		"null_one":                 {File: fileOf(t, "null_one:")},
		"kube":                     {File: fileOf(t, "kube: all")},
		"Kube":                     {File: fileOf(t, "Kube: {namespace: a}")},
		"K8SRUNNER_X":              {Environ: []string{"K8SRUNNER_X=" + token}},
		"K8SRUNNER_KUBE_NAMESPACE": {Environ: []string{"K8SRUNNER_KUBE_NAMESPACE="}},
		"K8SRUNNER_":               {Environ: []string{"K8SRUNNER_=1", "K8SRUNNER_X=2"}},
	} {
		t.Run(name, func(t *testing.T) {
			from.Environ = append(from.Environ, "KUBE_NAMESPACE=workloads")
			if _, err := check(t, from); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("the error is %v", err)
			} else if from.File != "" && !strings.Contains(err.Error(), from.File) && !strings.Contains(err.Error(), "environment") {
				t.Errorf("the error does not say where: %v", err)
			}
		})
	}
}

// TestRefusesFiles that are none, without quoting them.
func TestRefusesFiles(t *testing.T) {
	for name, text := range map[string]string{
		"a token":         token,
		"a list":          "- " + token,
		"not YAML":        "gateway: service_token: " + token,
		"an alias":        "gateway: {service_token: *" + token + "}",
		"an open quote":   "gateway:\n  service_token: \"" + token,
		"a tag":           "gateway:\n  service_token: !" + token + " [}",
		"a key twice":     "gateway: {service_token: " + token + ", service_token: " + token + "}",
		"a section twice": "gateway: {service_token: " + token + "}\ngateway: {}",
	} {
		t.Run(name, func(t *testing.T) {
			path := fileOf(t, text)
			_, err := check(t, Sources{File: path, Environ: []string{"KUBE_NAMESPACE=workloads"}})
			if err == nil || !strings.Contains(err.Error(), path) {
				t.Errorf("the error is %v", err)
			}
		})
	}
	if _, err := check(t, Sources{File: "/nowhere/config.yaml", Environ: []string{"KUBE_NAMESPACE=workloads"}}); err == nil || !strings.Contains(err.Error(), "/nowhere/config.yaml") {
		t.Errorf("without the file the error is %v", err)
	}
}

// TestErrorsHoldNoToken makes every other setting wrong beside a token.
func TestErrorsHoldNoToken(t *testing.T) {
	for _, s := range settings() {
		for _, place := range []source{inFile, inEnv} {
			m := made{place: {"gateway.service_token": token, s.key: "\x01 " + token}}
			if place == inFile {
				m[place][s.key] = "[" + token + "]"
			}
			if c, err := load(t, m); err == nil && s.key != "gateway.service_token" && !anyText(s.key) {
				t.Errorf("%s in %s is accepted: %+v", s.key, place, c)
			}
		}
	}
}

// anyText are settings without a wrong value.
func anyText(key string) bool {
	return slices.Contains([]string{"kube.kubeconfig", "catalog.path", "tls.cert", "tls.key", "tls.client_ca", "gateway.ca", "ziti.identity_file"}, key)
}
