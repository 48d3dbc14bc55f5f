package overlay

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const secret = "s3cr3t-key"

func enrolment() Enrolment {
	return Enrolment{ServiceName: "runner-1", IdentityID: "id-1", Identity: []byte(`{"id":{"key":"pem:` + secret + `"}}`)}
}

func TestKeep(t *testing.T) {
	folder := t.TempDir()
	file := File(filepath.Join(folder, "identity.json"))
	if _, found, err := file.Load(); found || err != nil {
		t.Fatalf("before it was kept: found %v, %v", found, err)
	}
	if err := file.Forget(); err != nil {
		t.Errorf("forgetting what was never kept: %v", err)
	}
	// An earlier one is replaced, whatever its mode.
	if err := os.WriteFile(string(file), []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := file.Keep(enrolment()); err != nil {
		t.Fatal(err)
	}
	got, found, err := file.Load()
	if err != nil || !found {
		t.Fatalf("after it was kept: found %v, %v", found, err)
	}
	if diff := cmp.Diff(enrolment(), got); diff != "" {
		t.Errorf("kept (-), loaded (+):\n%s", diff)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 {
		t.Errorf("the folder holds %v, want the file alone", entries)
	}
	if info, err := os.Stat(string(file)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v (%v), want 0600", info.Mode(), err)
	}
	if err := file.Forget(); err != nil {
		t.Fatal(err)
	}
	if _, found, err := file.Load(); found || err != nil {
		t.Errorf("after it was forgotten: found %v, %v", found, err)
	}
}

// TestKeepNothing: without a path nothing is kept, and nothing fails.
func TestKeepNothing(t *testing.T) {
	var file File
	if err := file.Keep(enrolment()); err != nil {
		t.Error(err)
	}
	if _, found, err := file.Load(); found || err != nil {
		t.Errorf("found %v, %v", found, err)
	}
	if err := file.Forget(); err != nil {
		t.Error(err)
	}
}

func TestKeepFails(t *testing.T) {
	file := File(filepath.Join(t.TempDir(), "absent", "identity.json"))
	err := file.Keep(enrolment())
	if err == nil || !strings.Contains(err.Error(), string(file)) {
		t.Errorf("keeping it in a folder that is absent: %v, want an error that names %s", err, file)
	}
	wantNoSecret(t, fmt.Sprint(err))

	folder := t.TempDir()
	file = File(filepath.Join(folder, "taken"))
	if err := os.Mkdir(string(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := file.Keep(enrolment()); err == nil {
		t.Error("a folder was replaced by a file")
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 1 {
		t.Errorf("the folder holds %v (%v), and a draft with a key in it", entries, err)
	}
}

func TestLoadRefuses(t *testing.T) {
	good := `{"service_name":"runner-1","identity_id":"id-1","identity_json":"e30="}`
	cases := map[string]struct {
		text string
		mode os.FileMode
		want string // in the error
	}{
		"readable by its group": {good, 0o640, "chmod 600 "},
		"readable by all":       {good, 0o604, "chmod 600 "},
		"writable by its group": {good, 0o620, "chmod 600 "},
		"cut off":               {`{"service_name":"runner-1","identity_json":"` + secret, 0o600, "remove it"},
		"of another form":       {`{"service_name":"runner-1","identity_json":{"key":"` + secret + `"}}`, 0o600, "remove it"},
		"a number":              {`{"service_name":4711}`, 0o600, "remove it"},
		"without a service":     {`{"identity_json":"e30="}`, 0o600, "remove it"},
		"without an identity":   {`{"service_name":"runner-1"}`, 0o600, "remove it"},
		"empty":                 {"", 0o600, "remove it"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			file := File(filepath.Join(t.TempDir(), "identity.json"))
			if err := os.WriteFile(string(file), []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(string(file), c.mode); err != nil { // past the umask
				t.Fatal(err)
			}
			_, found, err := file.Load()
			if found || err == nil {
				t.Fatalf("found %v, %v: want an error", found, err)
			}
			if !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), string(file)) {
				t.Errorf("the error does not name the file and %q: %v", c.want, err)
			}
			wantNoSecret(t, err.Error())
		})
	}
}

// TestHidden: an enrolment that is printed by mistake shows no key.
func TestHidden(t *testing.T) {
	e := enrolment()
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		for _, got := range []string{fmt.Sprintf(verb, e), fmt.Sprintf(verb, &e)} {
			if want := "the identity of runner-1"; got != want {
				t.Errorf("%s prints %q, want %q", verb, got, want)
			}
		}
	}
}

func wantNoSecret(t *testing.T, text string) {
	t.Helper()
	if strings.Contains(text, secret) || strings.Contains(text, "4711") {
		t.Errorf("it shows what is secret: %s", text)
	}
}
