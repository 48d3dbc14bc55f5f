package exec

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/remotecommand"

	"github.com/agynio/k8s-runner/workload"
)

// errNoStatus: a connection ended, and nobody said how the process did.
var errNoStatus = errors.New("the connection to the container ended before the status of the process came")

// refusal is what the container runtime said of a command that it could not run.
type refusal struct{ message string }

func (r *refusal) Error() string { return r.message }

// decodeStatus reads the status of a process: its exit code, or that the runtime
// could not run it, a *refusal.
func decodeStatus(data []byte) (int32, error) {
	var status metav1.Status
	if err := json.Unmarshal(data, &status); err != nil {
		return 0, fmt.Errorf("reading the status of the process: %w", err)
	}
	switch {
	case status.Status == metav1.StatusSuccess:
		return 0, nil
	case status.Reason != remotecommand.NonZeroExitCodeReason:
		return 0, &refusal{status.Message}
	case status.Details != nil:
		for _, cause := range status.Details.Causes {
			if cause.Type != remotecommand.ExitCodeCauseType {
				continue
			}
			code, err := strconv.ParseInt(cause.Message, 10, 32)
			if err != nil {
				return 0, fmt.Errorf("reading the exit code of the process: %w", err)
			}
			return int32(code), nil
		}
	}
	return 0, errors.New("the status of the process has no exit code")
}

// missing reports whether the Pod is not there.
func missing(err error) bool { return apierrors.IsNotFound(err) }

func encodeSize(size workload.Size) []byte {
	return fmt.Appendf(nil, `{"Width":%d,"Height":%d}`, size.Columns, size.Rows)
}
