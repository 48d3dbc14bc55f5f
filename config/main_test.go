package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// token is a service token of the tests. No error may hold it.
const token = "s3cr3t-token"

// source is one of the places where settings are made.
type source string

// The places, each overriding the one before.
const (
	inFile source = "file"
	inEnv  source = "environment"
	inFlag source = "flag"
)

// made is values of settings by place.
type made map[source]map[string]string

// load loads settings; the namespace is given where no place gives it.
func load(t *testing.T, m made) (Config, error) {
	t.Helper()
	from := Sources{Flags: pflag.NewFlagSet("test", pflag.ContinueOnError)}
	AddFlags(from.Flags)
	for key, value := range m[inEnv] {
		from.Environ = append(from.Environ, envOf(t, key)+"="+value)
	}
	if m[inEnv]["kube.namespace"] == "" && m[inFile]["kube.namespace"] == "" && m[inFlag]["kube.namespace"] == "" {
		from.Environ = append(from.Environ, "KUBE_NAMESPACE=workloads")
	}
	for key, needed := range companions() {
		if m[inEnv][key]+m[inFile][key]+m[inFlag][key] != "" {
			from.Environ = append(from.Environ, needed...)
		}
	}
	var lines []string
	for key, value := range m[inFile] {
		section, name, _ := strings.Cut(key, ".")
		lines = append(lines, section+":", "  "+name+": "+value)
	}
	from.File = fileOf(t, strings.Join(lines, "\n"))
	for key, value := range m[inFlag] {
		if err := from.Flags.Set(flagName(key), value); err != nil {
			t.Fatal(err)
		}
	}
	return check(t, from)
}

// companions are settings without which another one is refused.
func companions() map[string][]string {
	return map[string][]string{
		"network_policy.egress_cidrs": {"K8SRUNNER_NETWORK_POLICY=true"},
		"tls.cert":                    {"K8SRUNNER_TLS_KEY=/key"},
		"tls.key":                     {"K8SRUNNER_TLS_CERT=/cert"},
		"tls.client_ca":               {"K8SRUNNER_TLS_CERT=/cert", "K8SRUNNER_TLS_KEY=/key"},
		"gateway.ca":                  {"K8SRUNNER_GATEWAY_TLS=true"},
	}
}

// check loads from and looks for the token in the error.
func check(t *testing.T, from Sources) (Config, error) {
	t.Helper()
	c, err := Load(from)
	if err != nil && strings.Contains(err.Error(), token) {
		t.Errorf("the error holds the token: %v", err)
	}
	return c, err
}

// fileOf returns the path of a file with the given text.
func fileOf(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func envOf(t *testing.T, key string) string {
	t.Helper()
	for _, s := range settings() {
		if s.key == key {
			return s.env
		}
	}
	t.Fatalf("there is no setting %s", key)
	return ""
}

// valueOf is the setting key of c as text.
func valueOf(t *testing.T, c Config, key string) string {
	t.Helper()
	text, err := c.YAML()
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut("\n"+string(text), "\n"+strings.Split(key, ".")[0]+":")
	_, rest, _ = strings.Cut(rest, "\n    "+strings.Split(key, ".")[1]+":")
	value, _, _ := strings.Cut(rest, "\n    "+"")
	return strings.Trim(strings.TrimSpace(strings.SplitN(value, "\n", 2)[0]), `"`)
}
