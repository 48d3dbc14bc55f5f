package overlay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Enrolment is what an enrolment answers: an identity, and the service that it binds.
type Enrolment struct {
	ServiceName string `json:"service_name"`
	IdentityID  string `json:"identity_id"`
	// Identity is the JSON of the identity, private key and all.
	Identity []byte `json:"identity_json"`
}

// String hides the identity from logs.
func (e Enrolment) String() string { return "the identity of " + e.ServiceName }

// GoString does that for %#v.
func (e Enrolment) GoString() string { return e.String() }

// File is the path of the file that keeps an enrolment between starts. An empty one
// keeps nothing.
type File string

// others are the permissions of those who are not the owner.
const others fs.FileMode = 0o077

// Load returns the enrolment that is kept, if there is one. A file that others than
// its owner can read is refused.
func (f File) Load() (Enrolment, bool, error) {
	if f == "" {
		return Enrolment{}, false, nil
	}
	text, err := f.read()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Enrolment{}, false, nil
	case err != nil:
		return Enrolment{}, false, fmt.Errorf("reading the identity file: %w", err)
	}
	var kept Enrolment
	// What the decoder says could quote the key.
	if json.Unmarshal(text, &kept) != nil || kept.ServiceName == "" || len(kept.Identity) == 0 {
		return Enrolment{}, false, fmt.Errorf("reading the identity file: %s holds no enrolment; remove it, and the next start enrols again", string(f))
	}
	return kept, true, nil
}

func (f File) read() ([]byte, error) {
	file, err := os.Open(string(f))
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it was read
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); mode&others != 0 {
		return nil, fmt.Errorf("%s has mode %04o, so others than its owner may use the private key in it; run: chmod 600 %s", string(f), mode, string(f))
	}
	var text bytes.Buffer
	_, err = text.ReadFrom(file)
	return text.Bytes(), err
}

// Keep writes e, for its owner alone. Whenever it is interrupted, the file is there as
// a whole or as it was.
func (f File) Keep(e Enrolment) error {
	if f == "" {
		return nil
	}
	text, err := json.Marshal(e)
	if err == nil {
		err = f.replace(text)
	}
	if err != nil {
		return fmt.Errorf("writing the identity file %s: %w", string(f), err)
	}
	return nil
}

func (f File) replace(text []byte) error {
	folder := filepath.Dir(string(f))
	draft, err := os.CreateTemp(folder, ".identity-*") // with mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(draft.Name()) //nolint:errcheck // after the rename there is none
	_, err = draft.Write(text)
	if err == nil {
		err = draft.Sync()
	}
	if err = errors.Join(err, draft.Close()); err != nil {
		return err
	}
	if err := os.Rename(draft.Name(), string(f)); err != nil {
		return err
	}
	return syncFolder(folder)
}

// syncFolder makes a rename outlive a crash of the machine.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// Forget removes the enrolment that is kept, if there is one.
func (f File) Forget() error {
	if f == "" {
		return nil
	}
	if err := os.Remove(string(f)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the identity file: %w", err)
	}
	return nil
}
