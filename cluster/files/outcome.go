package files

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/agynio/k8s-runner/archive"
	"github.com/agynio/k8s-runner/workload"
)

// How the script ends where tar did not begin.
const (
	exitNoTar    = 70
	exitNoFolder = 71
	exitLink     = 72
	exitCut      = 73
)

// retrySoon is when to try again.
const retrySoon = 2 * time.Second

// outcome says what became of an archive of which sent was sent. Only what arrived
// whole and was unpacked whole is no error.
func outcome(r *Result, folder string, sent sent) error {
	switch r.Code {
	case 0:
		if !sent.whole || !arrived(r.Stdout, sent.bytes) {
			return interrupted()
		}
		return nil
	case exitNoTar:
		return workload.Errorf(workload.FailedPrecondition, "archive_no_tar", "nothing can be unpacked without a tar in the image")
	case exitNoFolder:
		return failure(r, "archive_no_folder", "the folder "+quote(folder)+" cannot be made or entered")
	case exitLink:
		return workload.Errorf(workload.FailedPrecondition, "archive_through_link",
			"in the container %s, which entries of the archive are in, is a link; below %s nothing goes through one", quote(string(r.Stdout)), quote(folder))
	case exitCut:
		return interrupted()
	}
	return failure(r, "archive_failed", fmt.Sprintf("tar ended with code %d", r.Code))
}

var recordsOut = regexp.MustCompile(`(?m)^(\d+)\+(\d+) records out`)

// arrived reports whether what dd counted is all. Some images have no dd.
func arrived(stdout []byte, size int64) bool {
	if bytes.HasPrefix(stdout, []byte("uncounted")) {
		return true
	}
	m := recordsOut.FindSubmatch(stdout)
	if m == nil || string(m[2]) != "0" {
		return false
	}
	records, err := strconv.ParseInt(string(m[1]), 10, 64)
	return err == nil && records*archive.Record == size
}

// failure tells by the words of a system call why the folder, or what is in it,
// could not be written. The line is what mkdir or tar say; it has names of files,
// and nothing of what they hold.
func failure(r *Result, token, what string) error {
	kind, line := workload.FailedPrecondition, ""
	for _, known := range []struct {
		words, token string
		kind         workload.Kind
	}{
		{"No space left on device", "archive_no_space", workload.ResourceExhausted},
		{"uota exceeded", "archive_no_space", workload.ResourceExhausted},
		{"Read-only file system", "archive_read_only", workload.FailedPrecondition},
		{"Permission denied", "archive_not_permitted", workload.FailedPrecondition},
		{"Operation not permitted", "archive_not_permitted", workload.FailedPrecondition},
		{"", token, kind},
	} {
		if line = lineWith(r.Stderr, known.words); line != "" {
			token, kind = known.token, known.kind
			break
		}
	}
	if line != "" {
		what += ": " + line
	}
	return workload.Errorf(kind, token, "%s; what was unpacked stays", what)
}

// lineWith returns the first line with words in it, as far as there is room.
func lineWith(text []byte, words string) string {
	const limit = 300
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(strings.Map(printable, line))
		if line == "" || !strings.Contains(line, words) {
			continue
		}
		if len(line) > limit {
			line = strings.ToValidUTF8(line[:limit], "") + "…"
		}
		return line
	}
	return ""
}

func printable(r rune) rune {
	if unicode.IsControl(r) {
		return ' '
	}
	return r
}

func quote(name string) string {
	const limit = 200
	if len(name) > limit {
		return fmt.Sprintf("%q…", name[:limit])
	}
	return fmt.Sprintf("%q", name)
}
