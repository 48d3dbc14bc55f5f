package config

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestPrintedConfigReadsBack prints settings in the form of the file and loads
// them from there.
func TestPrintedConfigReadsBack(t *testing.T) {
	full := Config{
		GRPC:          GRPC{Address: "[::1]:1"},
		TLS:           TLS{Cert: "/c: d", Key: "0123", ClientCA: "true"},
		Metrics:       Metrics{Address: ""},
		Traces:        Traces{Endpoint: "https://collector:4317"},
		Kube:          Kube{Namespace: "123", Kubeconfig: "/a b: c", QPS: 0.1, Burst: 7},
		Log:           Log{Level: "debug", Format: "json"},
		Streams:       Streams{PerWorkload: 9},
		Starts:        Starts{Grace: 11 * time.Second},
		Workload:      Workload{FSGroup: 42},
		Catalog:       Catalog{Path: "yes"},
		Templates:     Templates{Namespace: "a", AllowedKinds: []string{"v1 ConfigMap", "a.example/v1 Thing"}},
		Volumes:       Volumes{StorageClass: "0123", Size: "1e9"},
		Archive:       Archive{MaxSize: "1Mi"},
		Gateway:       Gateway{Address: "h:1", TLS: true, CA: "/ca", RunnerID: "0123"},
		Ziti:          Ziti{Enabled: true, EnrollmentTimeout: 90*time.Second + time.Millisecond, IdentityFile: "yes"},
		Capabilities:  Capabilities{Implementations: map[string]string{"docker": "rootless"}, DockerImage: "a:1", DockerRootlessImage: "b"},
		Security:      Security{Profile: "restricted", AllowedCapabilities: []string{"KILL", "NET_RAW"}, AllowedPrivileges: []string{"host-path"}, RunAsUser: 7},
		NetworkPolicy: NetworkPolicy{Enabled: true, EgressCIDRs: []string{"10.0.0.0/8"}},
	}
	plain := Default()
	plain.Kube.Namespace, plain.GRPC.Plaintext = "workloads", true
	for name, c := range map[string]Config{"defaults": plain, "everything": full} {
		t.Run(name, func(t *testing.T) {
			text, err := c.YAML()
			if err != nil {
				t.Fatal(err)
			}
			got, err := check(t, Sources{File: fileOf(t, string(text))})
			if err != nil {
				t.Fatalf("%v, of:\n%s", err, text)
			}
			if len(got.Capabilities.Implementations) == 0 {
				got.Capabilities.Implementations = c.Capabilities.Implementations
			}
			if diff := cmp.Diff(c, got); diff != "" {
				t.Errorf("(-printed +read):\n%s\nof:\n%s", diff, text)
			}
		})
	}
}

func TestPrintedConfigHoldsNoSecret(t *testing.T) {
	c, err := load(t, made{inEnv: {"gateway.service_token": token}})
	if err != nil {
		t.Fatal(err)
	}
	if c.Gateway.ServiceToken != token {
		t.Errorf("the token is read as %q", c.Gateway.ServiceToken)
	}
	text, err := c.YAML()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), token) {
		t.Errorf("the token is printed:\n%s", text)
	}
	if got := valueOf(t, c, "gateway.service_token"); got == "" {
		t.Errorf("it does not show that there is a token:\n%s", text)
	}
}

// TestDocumentationListsEverySetting keeps docs/configuration.md true.
func TestDocumentationListsEverySetting(t *testing.T) {
	data, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	c := Default()
	rows := map[string][]string{}
	for line := range strings.Lines(string(data)) {
		cells := strings.Split(line, "|")
		if len(cells) == 6 && strings.HasPrefix(cells[1], " `") {
			rows[strings.Trim(cells[1], " `")] = cells
		}
	}
	for _, s := range settings() {
		row, ok := rows[s.key]
		if !ok {
			t.Errorf("%s is not documented", s.key)
			continue
		}
		delete(rows, s.key)
		if env := strings.Trim(row[2], " `"); env != s.env {
			t.Errorf("the variable of %s is documented as %s", s.key, env)
		}
		want := valueOf(t, c, s.key)
		switch {
		case s.key == "security.allowed_capabilities":
			want = strings.Join(c.Security.AllowedCapabilities, ",")
		case want == "", want == "[]":
			want = "–"
		}
		if got := strings.Trim(row[3], " `"); got != want {
			t.Errorf("the default of %s is documented as %s and is %s", s.key, got, want)
		}
	}
	for key := range rows {
		if strings.Contains(key, ".") {
			t.Errorf("%s is documented and no setting", key)
		}
	}
}
