package applier

import (
	"context"
	"errors"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/agynio/k8s-runner/workload"
)

// mute reports whether a webhook refuses dry runs as such: the API server's words
// (k8s.io/apiserver, webhook errors).
func mute(err error) bool { return strings.Contains(err.Error(), "does not support dry run") }

// DryRun asks the cluster whether it would take pod, which stays unmade. It is
// nil where the cluster cannot say: it does not answer, a quota is used up at the
// moment, or a webhook knows no dry runs.
func (a *Applier) DryRun(ctx context.Context, pod *unstructured.Unstructured) error {
	options := createOptions()
	options.DryRun = []string{metav1.DryRunAll}
	_, err := a.pods.Create(ctx, pod, options)
	if err == nil || mute(err) {
		return nil
	}
	err = a.explain(err, "trying", pod.GetName())
	var known *workload.Error
	if errors.As(err, &known) && known.Kind == workload.FailedPrecondition {
		return err
	}
	return nil
}
