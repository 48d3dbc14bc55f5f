package request

import (
	"regexp"
	"strings"

	"github.com/distribution/reference"
)

// quotable matches what errors may repeat: what stands before an @ that begins
// no digest, or before a second one, can be a user's name and password.
var quotable = regexp.MustCompile(`^[^@]*(@sha(256|512):[^@]*)?$`)

// checkImage refuses what no container runtime could pull, before a Pod
// exists that would wait for it forever.
func (p *parser) checkImage(field, image string) {
	if image == "" {
		token := "container_image_required"
		if field == "main" {
			token = "main_container_image_required"
		}
		p.fault(field+".image", token, "every container needs an image")
		return
	}
	if strings.Contains(image, "://") { // such a text can hold a password
		p.fault(field+".image", "invalid_image", "an image reference has no scheme; it is host:5000/team/name:tag")
		return
	}
	named, err := reference.ParseNormalizedNamed(image)
	switch {
	case err == nil && named.Name() == strings.ToLower(named.Name()):
	case quotable.MatchString(image):
		p.fault(field+".image", "invalid_image",
			"%q is not an image reference such as host:5000/team/name:tag, in lower case", image)
	default:
		p.fault(field+".image", "invalid_image", "an image reference has no @ but that of a digest, such as name@sha256:…; credentials go into image_pull_credentials")
	}
}
