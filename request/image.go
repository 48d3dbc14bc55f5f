package request

import (
	"strings"

	"github.com/distribution/reference"
)

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
	if err != nil || named.Name() != strings.ToLower(named.Name()) {
		p.fault(field+".image", "invalid_image",
			"%q is not an image reference such as host:5000/team/name:tag, in lower case", image)
	}
}
