package request

import (
	"path"
	"strings"

	"github.com/agynio/k8s-runner/workload"
)

// maxSecret is what a Secret holds (Kubernetes, MaxSecretSize). The keys do not
// count.
const maxSecret = 1 << 20

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
		case len(file) >= maxPath:
			p.checkLength(field, len(file), maxPath)
		case !isFilePath(file):
			p.fault(field, "invalid_inline_path", "%q is not an absolute, clean path of a file without a colon", file)
		case isProc(file):
			p.fault(field, "invalid_inline_path", "%q is the kernel's: nothing can be mounted there", file)
		case !mounted[file]:
			p.fault(field, "unmounted_inline_file", "no container has it among its inline_file_mounts")
		}
	}
	if total > maxSecret {
		p.fault("inline_files", "inline_files_too_large", "they hold %d bytes in all, a Secret holds %d", total, maxSecret)
	}
}

// A taker is what a container mounts at a path.
type taker struct {
	field    string
	isFile   bool
	readOnly bool
}

func (p *parser) checkInlineMounts(field string, c *workload.Container, files map[string][]byte, mounted map[string]bool) {
	if len(c.InlineFiles) == 0 {
		return
	}
	taken := map[string]taker{}
	for i, m := range c.Mounts {
		taken[m.Path] = taker{field: index(field+".mounts", i), readOnly: m.ReadOnly}
	}
	for i, file := range c.InlineFiles {
		at := index(field+".inline_file_mounts", i)
		if _, defined := files[file]; !defined {
			p.fault(at+".path", "undefined_inline_file", "inline_files has no %q", file)
		}
		if first, twice := taken[file]; twice {
			p.fault(at+".path", "duplicate_mount_path", "%s and %s both mount at %q", first.field, at, file)
		}
		taken[file], mounted[file] = taker{field: at, isFile: true}, true
	}
	for _, mount := range sortedKeys(taken) {
		here, above := taken[mount], nearestAbove(mount, taken)
		switch {
		case above.isFile:
			p.fault(above.field+".path", "mount_below_inline_file", "%s mounts at %q, below a file", here.field, mount)
		case here.isFile && above.readOnly:
			p.fault(here.field+".path", "inline_file_below_read_only_mount",
				"%q is in %s, which is read-only: no file can be made there to mount it at", mount, above.field)
		}
	}
}

// nearestAbove returns what is mounted at the nearest of the folders in which
// the clean path mount is, if anything is.
func nearestAbove(mount string, taken map[string]taker) taker {
	if len(mount) >= maxPath { // refused for that
		return taker{}
	}
	for end := strings.LastIndexByte(mount, '/'); end > 0; end = strings.LastIndexByte(mount[:end], '/') {
		if t, found := taken[mount[:end]]; found {
			return t
		}
	}
	return taker{}
}

// isFilePath reports whether s names a file so that no other spelling does, and
// so that Kubernetes can mount it.
func isFilePath(s string) bool {
	return path.IsAbs(s) && path.Clean(s) == s && s != "/" && !strings.ContainsAny(s, ":\x00")
}
