package request

import (
	"path"
	"strings"

	"github.com/agynio/k8s-runner/workload"
)

// maxInlineBytes is what a Secret holds (Kubernetes, MaxSecretSize). The keys
// do not count.
const maxInlineBytes = 1 << 20

// checkInlineFiles refuses files that no container mounts, mounts of no file,
// and more than one Secret holds. It repeats no content.
func (p *parser) checkInlineFiles(spec *workload.Spec) {
	mounted := map[string]bool{}
	for field, c := range spec.Containers() {
		p.checkInlineMounts(field, c, spec.InlineFiles, mounted)
	}
	total := 0
	for _, file := range sortedKeys(spec.InlineFiles) {
		total += len(spec.InlineFiles[file])
		field := "inline_files[" + file + "]"
		switch {
		case !isFilePath(file):
			p.fault(field, "invalid_inline_path", "%q is not an absolute, clean path of a file without a colon", file)
		case !mounted[file]:
			p.fault(field, "unmounted_inline_file", "no container has it among its inline_file_mounts")
		}
	}
	if total > maxInlineBytes {
		p.fault("inline_files", "inline_files_too_large", "they hold %d bytes in all, a Secret holds %d", total, maxInlineBytes)
	}
}

func (p *parser) checkInlineMounts(field string, c *workload.Container, files map[string][]byte, mounted map[string]bool) {
	taken := map[string]string{}
	for i, m := range c.Mounts {
		taken[m.Path] = index(field+".mounts", i)
	}
	for i, file := range c.InlineFiles {
		at := index(field+".inline_file_mounts", i)
		if _, defined := files[file]; !defined {
			p.fault(at+".path", "undefined_inline_file", "inline_files has no %q", file)
		}
		if first := taken[file]; first != "" {
			p.fault(at+".path", "duplicate_mount_path", "%s and %s both mount at %q", first, at, file)
		}
		taken[file], mounted[file] = at, true
	}
	for _, file := range c.InlineFiles {
		for _, mount := range sortedKeys(taken) {
			if strings.HasPrefix(mount, file+"/") {
				p.fault(taken[file]+".path", "mount_below_inline_file", "%s mounts at %q, below a file", taken[mount], mount)
			}
		}
	}
}

// isFilePath reports whether s names a file so that no other spelling does, and
// so that Kubernetes can mount it.
func isFilePath(s string) bool {
	return path.IsAbs(s) && path.Clean(s) == s && s != "/" && !strings.ContainsAny(s, ":\x00")
}
