package applier

import (
	"context"
	"errors"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/agynio/k8s-runner/workload"
)

// failing makes the first creates fail with err, or all if times is negative;
// it returns how many were tried.
func failing(client *fake.FakeDynamicClient, times int, err error) *int {
	tried := 0
	client.PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		tried++
		return times < 0 || tried <= times, nil, err
	})
	return &tried
}

// TestStartTriesAgain what passes, and only that, within the caller's deadline.
func TestStartTriesAgain(t *testing.T) {
	timedOut := apierrors.NewInternalError(errors.New(`failed calling webhook "slow.example": context deadline exceeded`))
	quota409 := apierrors.NewConflict(schema.GroupResource{Resource: "resourcequotas"}, "q", errors.New("modified"))
	denied429 := &apierrors.StatusError{ErrStatus: metav1.Status{Code: 429, Message: `admission webhook "p" denied the request: no`}}
	for name, c := range map[string]struct {
		times    int
		err      error
		deadline time.Duration
		tried    int
		want     verdict
	}{
		"a webhook times out twice (C32)":   {2, timedOut, time.Minute, 3, verdict{}},
		"the quota changes once (C29)":      {1, quota409, time.Minute, 2, verdict{}},
		"no connection for a while":         {3, &url.Error{Op: "Post", Err: errors.New("connection refused")}, time.Minute, 4, verdict{}},
		"no connection at all":              {-1, &url.Error{Op: "Post", Err: errors.New("connection refused")}, time.Hour, maxTries, verdict{workload.Unavailable, "kubernetes_unavailable", time.Second}},
		"no time for a second try":          {-1, timedOut, 90 * time.Millisecond, 1, verdict{workload.Unavailable, "kubernetes_unavailable", time.Second}},
		"a used-up quota":                   {-1, apierrors.NewForbidden(podsResource(), "w", errors.New("exceeded quota: q")), time.Minute, 1, verdict{workload.ResourceExhausted, "quota_exceeded", 10 * time.Second}},
		"a webhook that says no with a 429": {-1, denied429, time.Minute, 1, verdict{workload.FailedPrecondition, "admission_denied", 0}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, client := cluster()
				tried := failing(client, c.times, c.err)
				ctx, cancel := context.WithTimeout(t.Context(), c.deadline)
				defer cancel()
				_, err := a.Start(ctx, pod("digest"), nil, nil)
				wantVerdict(t, err, c.want)
				if *tried != c.tried {
					t.Errorf("it tried %d times, not %d", *tried, c.tried)
				}
				if left, _ := ctx.Deadline(); time.Until(left) < 0 {
					t.Error("it came back after the deadline")
				}
			})
		})
	}
}

// TestStartFindsWhatIsThere: whatever the server refuses, the Pod of an earlier
// start decides.
func TestStartFindsWhatIsThere(t *testing.T) {
	quota := apierrors.NewForbidden(podsResource(), "w", errors.New("exceeded quota: q"))
	for digest, want := range map[string]verdict{
		"digest": {},
		"other":  {workload.AlreadyExists, "workload_exists", 0},
	} {
		a, client := cluster(pod(digest, withUID))
		answers(client, "create", "pods", quota)
		_, err := a.Start(context.Background(), pod("digest"), nil, nil)
		wantVerdict(t, err, want)
	}
}
