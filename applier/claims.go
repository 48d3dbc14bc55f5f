package applier

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/agynio/k8s-runner/workload"
)

// reading is what was read of the claims of a start: those that are there, in
// the place of the wanted ones, or why one of them cannot be used.
type reading struct {
	claims []*unstructured.Unstructured
	err    error
}

// look reads the wanted claims while the caller does something else. One reading
// comes.
func (a *Applier) look(ctx context.Context, wanted []*unstructured.Unstructured) <-chan reading {
	out := make(chan reading, 1)
	go func() {
		there := make([]*unstructured.Unstructured, len(wanted))
		group, ctx := sideBySide(ctx)
		for i, claim := range wanted {
			group.Go(func() (err error) {
				there[i], err = a.existing(ctx, claim)
				return err
			})
		}
		out <- reading{there, group.Wait()}
	}()
	return out
}

// existing returns the claim that want describes, or nil if it is absent. One
// that is there is never changed, and must be fit for use.
//
// Most are there. A create would find that out too, but a quota counts also
// creates that come to nothing, until it is next reckoned up.
func (a *Applier) existing(ctx context.Context, want *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	claim, err := retry(ctx, passing, func() (*unstructured.Unstructured, error) {
		return a.claims.Get(ctx, want.GetName(), metav1.GetOptions{})
	})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, a.explain(err, "reading the claim", want.GetName())
	}
	return claim, usable(claim, want.GetLabels()[workload.LabelVolumeKey])
}

// create creates the claim want. Another start may have made it in between, and
// taken the last of the quota for it.
func (a *Applier) create(ctx context.Context, want *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	claim, err := retry(ctx, passing, func() (*unstructured.Unstructured, error) {
		made, err := a.claims.Create(ctx, want, createOptions())
		if err == nil {
			return made, nil
		}
		if there, getErr := a.claims.Get(ctx, want.GetName(), metav1.GetOptions{}); getErr == nil {
			return there, nil
		}
		return nil, err
	})
	if err != nil {
		return nil, a.explain(err, "creating the claim", want.GetName())
	}
	return claim, usable(claim, want.GetLabels()[workload.LabelVolumeKey])
}

// usable decides whether a workload may mount claim as the volume with this key.
func usable(claim *unstructured.Unstructured, key string) error {
	refuse := func(token, why string) *workload.Error {
		return workload.Errorf(workload.FailedPrecondition, token, "the claim %s %s", claim.GetName(), why)
	}
	phase, _, _ := unstructured.NestedString(claim.Object, "status", "phase")
	has := claim.GetLabels()[workload.LabelVolumeKey]
	switch {
	case !ours(claim):
		return refuse("claim_not_ours", "was not made by the runner; choose another name for the volume")
	case key != "" && has != "" && key != has:
		return refuse("claim_key_mismatch", "belongs to another volume_key; choose another name for the volume")
	case claim.GetDeletionTimestamp() != nil:
		return refuse("claim_terminating", "is still being deleted").Retry(retryTerminating)
	case phase == "Lost":
		return refuse("claim_lost", "has lost its volume, and with it the data; remove it to begin anew")
	}
	return nil
}

// Mounted returns the UID of the Pod of workload id and the names of the claims
// that it mounts, as far as the runner made them. An absent Pod is NotFound.
func (a *Applier) Mounted(ctx context.Context, id string) (uid string, claims []string, err error) {
	pod, err := a.find(ctx, id)
	if err != nil {
		return "", nil, err
	}
	for _, name := range claimNames(pod) {
		claim, err := a.claims.Get(ctx, name, metav1.GetOptions{})
		if err == nil && ours(claim) {
			claims = append(claims, name)
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return "", nil, a.explain(err, "reading the claim", name)
		}
	}
	return string(pod.GetUID()), claims, nil
}

// claimNames lists the claims that pod mounts.
func claimNames(pod *unstructured.Unstructured) (names []string) {
	list, _, _ := unstructured.NestedFieldNoCopy(pod.Object, "spec", "volumes")
	volumes, _ := list.([]any)
	for _, v := range volumes {
		volume, _ := v.(map[string]any)
		if name, ok, _ := unstructured.NestedString(volume, "persistentVolumeClaim", "claimName"); ok {
			names = append(names, name)
		}
	}
	return names
}

// DeleteClaim deletes the claim called name, with no grace if forced. Kubernetes
// keeps it as long as a Pod on a node uses it. An absent one is NotFound, one
// that the runner did not make stays: FailedPrecondition; one that is going
// already is no error.
func (a *Applier) DeleteClaim(ctx context.Context, name string, force bool) error {
	absent := workload.Errorf(workload.NotFound, "volume_not_found", "there is no claim %q", name)
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return absent // nothing can have such a name
	}
	options := metav1.DeleteOptions{}
	if force {
		options.GracePeriodSeconds = new(int64)
	}
	for tries := 1; ; tries++ {
		claim, err := a.claims.Get(ctx, name, metav1.GetOptions{})
		if err == nil && !ours(claim) {
			return workload.Errorf(workload.FailedPrecondition, "claim_not_ours", "the claim %s was not made by the runner and stays", name)
		}
		if err == nil {
			// Only this one: another may have the name by then.
			options.Preconditions = metav1.NewUIDPreconditions(string(claim.GetUID()))
			err = a.claims.Delete(ctx, name, options)
		}
		if apierrors.IsNotFound(err) {
			return absent
		}
		if !conflict(err) || tries == maxTries {
			return a.explain(err, "deleting the claim", name)
		}
	}
}
