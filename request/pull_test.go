package request_test

import (
	"encoding/base64"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agynio/k8s-runner/catalog"
	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/render"
	"github.com/agynio/k8s-runner/request"
	"github.com/agynio/k8s-runner/workload"
)

func credential(registry, username, password string) *runnerv1.StartWorkloadRequest {
	return &runnerv1.StartWorkloadRequest{
		Main:                 &runnerv1.ContainerSpec{Image: "a"},
		ImagePullCredentials: []*runnerv1.ImagePullCredential{{Registry: registry, Username: username, Password: password}},
	}
}

// TestRegistries has the keys under which the kubelet looks for a credential
// (C24). An empty one means that the registry is refused.
func TestRegistries(t *testing.T) {
	const hub = "https://index.docker.io/v1/"
	for registry, key := range map[string]string{
		"":                                hub,
		"docker.io":                       hub,
		"index.docker.io":                 hub,
		"registry-1.docker.io":            hub,
		"https://index.docker.io/v1/":     hub,
		"https://index.docker.io/v2/":     hub,
		"http://docker.io":                hub,
		"Docker.IO":                       hub,
		"docker.io/library":               hub,
		"ghcr.io":                         "ghcr.io",
		"https://ghcr.io/":                "ghcr.io",
		"https://ghcr.io":                 "ghcr.io",
		"http://ghcr.io/v2/":              "ghcr.io",
		"GHCR.io/team":                    "ghcr.io",
		"registry.example.com:5000":       "registry.example.com:5000",
		"https://registry:5000/v1/":       "registry:5000",
		"localhost:5000":                  "localhost:5000",
		"127.0.0.1:5000":                  "127.0.0.1:5000",
		"[2001:db8::1]:5000":              "[2001:db8::1]:5000",
		"123.dkr.ecr.eu.amazonaws.com":    "123.dkr.ecr.eu.amazonaws.com",
		"docker.io.example.com":           "docker.io.example.com",
		"notdocker.io":                    "notdocker.io",
		"https://user@ghcr.io":            "",
		"https://user:s3cr3t@ghcr.io":     "",
		"user:s3cr3t@ghcr.io":             "",
		"ftp://ghcr.io":                   "",
		"oci://ghcr.io":                   "",
		"https://":                        "",
		"/":                               "",
		":5000":                           "",
		"ghcr.io:":                        "",
		"ghcr.io:port":                    "",
		"ghcr.io?a=s3cr3t":                "",
		"ghcr.io#s3cr3t":                  "",
		"ghcr io":                         "",
		" ghcr.io":                        "",
		"ghcr.io\n":                       "",
		"my_registry:5000":                "",
		"-ghcr.io":                        "",
		"*.azurecr.io":                    "",
		"ghcr.io,docker.io":               "",
		strings.Repeat("a", 300) + ".com": "",
	} {
		t.Run(registry, func(t *testing.T) {
			req := credential(registry, "me", "p")
			if key == "" {
				if diff := cmp.Diff([]string{"invalid_registry image_pull_credentials[0].registry"}, faults(t, req)); diff != "" {
					t.Errorf("violations (-want +got):\n%s", diff)
				}
				return
			}
			spec, err := request.Parse(req)
			if err != nil {
				t.Fatal(err)
			}
			want := []workload.PullCredential{{Registry: key, Username: "me", Password: "p"}}
			if diff := cmp.Diff(want, spec.PullCredentials); diff != "" {
				t.Errorf("credentials (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCredentials(t *testing.T) {
	const field = "invalid_credential image_pull_credentials[0]."
	for name, c := range map[string]struct {
		username, password string
		want               []string
	}{
		"a token":              {"oauth2accesstoken", strings.Repeat("t", 4000), nil},
		"odd, but right":       {"00000000-0000-0000-0000-000000000000", " p:a\"\\ss é ", nil},
		"a robot":              {"team+robot$x", "p", nil},
		"no username":          {"", "p", []string{field + "username"}},
		"no password":          {"me", "", []string{field + "password"}},
		"neither":              {"", "", []string{field + "password", field + "username"}},
		"a colon":              {"me:you", "p", []string{field + "username"}},
		"a newline in a name":  {"me\n", "p", []string{field + "username"}},
		"a return in a name":   {"me\r", "p", []string{field + "username"}},
		"NUL in a name":        {"me\x00", "p", []string{field + "username"}},
		"a newline of a token": {"me", "token\n", []string{field + "password"}},
		"NUL in a password":    {"me", "p\x00", []string{field + "password"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, faults(t, credential("ghcr.io", c.username, c.password))); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPullSecretSize has credentials of which a Secret is full, as templates
// see it, and a byte more. Some characters become six, and all are there twice.
func TestPullSecretSize(t *testing.T) {
	for name, char := range map[string]string{"as they are": "a", "escaped": "<", "of several bytes": "é"} {
		t.Run(name, func(t *testing.T) {
			filled := func(n int) *runnerv1.StartWorkloadRequest {
				req := credential("ghcr.io", "me", "p")
				req.ImagePullCredentials = append(req.ImagePullCredentials, &runnerv1.ImagePullCredential{Username: "you", Password: strings.Repeat(char, n)})
				return req
			}
			full := sort.Search(1<<20, func(n int) bool { return faults(t, filled(n+1)) != nil })
			if diff := cmp.Diff([]string{"image_pull_credentials_too_large image_pull_credentials"}, faults(t, filled(full+1))); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
			spec, err := request.Parse(filled(full))
			if err != nil {
				t.Fatal(err)
			}
			secrets := render.NewInput(spec, &catalog.Plan{}, render.Settings{}).PullSecrets
			config, err := base64.StdEncoding.DecodeString(secrets[0].Config)
			if size := len(config); err != nil || len(secrets) != 1 || size > 1<<20 || size < 1<<20-20 {
				t.Errorf("of %d Secrets the first has %d bytes (%v)", len(secrets), size, err)
			}
		})
	}
}

// TestCredentialsAreInNoError puts secrets into each part of a credential.
func TestCredentialsAreInNoError(t *testing.T) {
	const secret = "s3cr3t-value"
	for _, parts := range [][3]string{
		{secret + " x", "me", "p"}, {"https://" + secret + "@ghcr.io", "me", "p"}, {"ghcr.io?" + secret, "me", "p"}, {secret + "://ghcr.io", "me", "p"},
		{secret + ":", "me", "p"}, {"ghcr.io:" + secret, "me", "p"}, {"%" + secret, "me", "p"}, {"[" + secret, "me", "p"},
		{"ghcr.io", secret + ":" + secret, "p"}, {"ghcr.io", secret + "\n", "p"}, {"ghcr.io", secret, ""}, {"ghcr.io", "", secret}, {"ghcr.io", "me", secret + "\n"},
		{"", "", secret + "\x00"},
	} {
		_, err := request.Parse(credential(parts[0], parts[1], parts[2]))
		if err == nil {
			t.Errorf("%q is accepted", parts)
			continue
		}
		if strings.Contains(err.Error(), secret) {
			t.Errorf("the error of %q holds the secret: %v", parts, err)
		}
	}
}
