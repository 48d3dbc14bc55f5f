package request

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/workload"
)

// dockerHub is Docker Hub's key in a Docker configuration.
const dockerHub = "https://index.docker.io/v1/"

func (p *parser) pullCredential(field string, c *runnerv1.ImagePullCredential) workload.PullCredential {
	registry, ok := registryKey(c.GetRegistry())
	if !ok { // such a text can hold a password
		p.fault(field+".registry", "invalid_registry", "it is not the host of a registry, such as ghcr.io or registry.example.com:5000")
	}
	if c.GetUsername() == "" || strings.ContainsAny(c.GetUsername(), ":\x00\r\n") {
		p.fault(field+".username", "invalid_credential", "a username is required, without a colon and in one line")
	}
	if c.GetPassword() == "" || strings.ContainsAny(c.GetPassword(), "\x00\r\n") {
		p.fault(field+".password", "invalid_credential", "a password or token is required, in one line")
	}
	return workload.PullCredential{Registry: registry, Username: c.GetUsername(), Password: c.GetPassword()}
}

// checkPullSecrets refuses more than a Secret holds, as a .dockerconfigjson of
// all credentials.
func (p *parser) checkPullSecrets(spec *workload.Spec) {
	total := len(`{"auths":{}}`)
	for _, c := range spec.PullCredentials {
		total += len(`:{"username":,"password":,"auth":""},`) + jsonLength(c.Registry) + jsonLength(c.Username) + jsonLength(c.Password) +
			base64.StdEncoding.EncodedLen(len(c.Username)+len(":")+len(c.Password))
	}
	if total > maxSecret {
		p.fault("image_pull_credentials", "image_pull_credentials_too_large", "they make %d bytes in all, a Secret holds %d", total, maxSecret)
	}
}

// jsonLength is that of text in quotes, with what is escaped.
func jsonLength(text string) int {
	quoted, _ := json.Marshal(text) // a string always has a JSON
	return len(quoted)
}

// registryKey returns the key under which the kubelet looks for a registry's
// credential: its host, or Docker Hub's own key for all of its names.
func registryKey(registry string) (key string, ok bool) {
	if registry == "" {
		return dockerHub, true
	}
	text := registry
	if !strings.Contains(text, "://") {
		text = "https://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" || (u.Scheme != "https" && u.Scheme != "http") || !isHost(u) {
		return "", false
	}
	switch host := strings.ToLower(u.Host); host {
	case "docker.io", "index.docker.io", "registry-1.docker.io", "registry.hub.docker.com", "hub.docker.com", "www.docker.io":
		return dockerHub, true
	default:
		return host, true
	}
}

// isHost reports whether u has the host, and perhaps port, of an image
// reference.
func isHost(u *url.URL) bool {
	host := u.Hostname()
	if strings.HasSuffix(u.Host, ":") || host == "" {
		return false
	}
	return strings.Contains(host, ":") || isHostName(strings.ToLower(host))
}

func isHostName(host string) bool { return len(validation.IsDNS1123Subdomain(host)) == 0 }
