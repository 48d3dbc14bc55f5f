package archive

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/agynio/k8s-runner/workload"
)

var then = time.Unix(1_700_000_000, 0)

func folder(name string) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: 0o755, ModTime: then}
}

func file(name string) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(contentOf(name))), ModTime: then}
}

func contentOf(name string) string { return "content of " + name }

func link(name, target string) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Mode: 0o777, ModTime: then}
}

func hardLink(name, target string) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: target, Mode: 0o644, ModTime: then}
}

func special(name string, kind byte) *tar.Header {
	return &tar.Header{Typeflag: kind, Name: name, Mode: 0o644, ModTime: then}
}

func with(h *tar.Header, change func(*tar.Header)) *tar.Header {
	change(h)
	return h
}

// pack makes an archive as any program might; files have contentOf their names.
func pack(t testing.TB, headers ...*tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, h := range headers {
		if err := w.WriteHeader(h); err != nil {
			t.Fatalf("%s: %v", h.Name, err)
		}
		if h.Typeflag == tar.TypeReg && h.Size > 0 {
			if _, err := w.Write([]byte(strings.Repeat(contentOf(h.Name), 2)[:h.Size])); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// tokens are those of the violations of err, by field; of an error without any its
// own token is under "".
func tokens(err error) map[string]string {
	var domain *workload.Error
	if !errors.As(err, &domain) {
		return map[string]string{"": fmt.Sprint(err)}
	}
	found := map[string]string{}
	if len(domain.Violations) == 0 {
		found[""] = domain.Token
	}
	for _, v := range domain.Violations {
		found[v.Field] = v.Token
	}
	return found
}
