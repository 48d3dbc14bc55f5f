// Package files puts archives into containers, with the tar of their images.
//
// What an archive holds is checked before anything is sent (package archive). That
// no link which is in the container already leads an entry out of its folder is
// checked there, by a small script (unpack.sh), before tar begins. A process of the
// container that makes such a link in between gains nothing by it: it can write what
// tar can.
package files

import (
	"context"
	_ "embed" // for the script
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/agynio/k8s-runner/archive"
	"github.com/agynio/k8s-runner/workload"
)

// Result is how a program in a container ended.
type Result struct {
	Code int32
	// Stdout and Stderr are the last of what was written, a few KiB of each.
	Stdout, Stderr []byte
}

// Run runs argv in a container with stdin. Its error means that it was not run, as
// a *workload.Error, or that nobody knows how it ended.
type Run func(ctx context.Context, target workload.Target, argv []string, stdin io.Reader) (Result, error)

// Putter puts archives into containers.
type Putter struct{ run Run }

// NewPutter returns a Putter.
func NewPutter(run Run) *Putter { return &Putter{run: run} }

//go:embed unpack.sh
var script string

// maxPath is the longest path of Linux, in bytes.
const maxPath = 4095

// Put unpacks a tar archive in a folder of a container, which is made if it is not
// there. If it fails in the middle, what was unpacked stays.
func (p *Putter) Put(ctx context.Context, target workload.Target, folder string, payload []byte) error {
	if err := checkFolder(folder); err != nil {
		return err
	}
	a, err := archive.Open(payload, "tar_payload")
	if err != nil || a.Empty() {
		return err
	}
	stream := open(a)
	defer stream.close()
	result, err := p.run(ctx, target, []string{"sh", "-c", script, "unpack", path.Clean(folder)}, stream)
	if err != nil {
		return notRun(ctx, err)
	}
	return outcome(&result, folder, stream.close())
}

func checkFolder(folder string) error {
	var problem string
	switch {
	case !path.IsAbs(folder):
		problem = "is not an absolute path"
	case strings.ContainsRune(folder, 0):
		problem = "holds a NUL"
	case len(folder) > maxPath:
		problem = fmt.Sprintf("is longer than Linux takes, which is %d bytes", maxPath)
	default:
		return nil
	}
	return workload.Invalid([]workload.Violation{{Field: "path", Token: "invalid_archive_path", Message: problem}})
}

// notRun tells an image without a shell from a connection that broke.
func notRun(ctx context.Context, err error) error {
	var domain *workload.Error
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("unpacking the archive: %w", context.Cause(ctx))
	case errors.As(err, &domain) && domain.Kind == workload.FailedPrecondition:
		return workload.Errorf(workload.FailedPrecondition, "archive_no_tar",
			"nothing can be unpacked without sh and tar in the image: %s", domain.Message).Because(err)
	case domain != nil:
		return err
	}
	return interrupted().Because(err)
}

func interrupted() *workload.Error {
	return workload.Errorf(workload.Unavailable, "archive_interrupted", "the archive did not arrive whole; what was unpacked of it stays").Retry(retrySoon)
}
