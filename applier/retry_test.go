package applier

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/rest"
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
		"no connection within the deadline": {-1, &url.Error{Op: "Post", Err: errors.New("connection refused")}, time.Minute, 34, verdict{workload.Unavailable, "kubernetes_unavailable", time.Second}},
		"no connection and no deadline":     {-1, &url.Error{Op: "Post", Err: errors.New("connection refused")}, 0, maxTries, verdict{workload.Unavailable, "kubernetes_unavailable", time.Second}},
		"an answer that is cut off":         {1, errCutOff, time.Minute, 2, verdict{}},
		"no account in a new namespace":     {3, forbiddenPod(noDefaultAccount), time.Minute, 4, verdict{}},
		"no account and no deadline":        {-1, forbiddenPod(noDefaultAccount), 0, maxTries, verdict{workload.FailedPrecondition, "service_account_missing", time.Second}},
		"an account that nobody makes":      {-1, forbiddenPod(`error looking up service account workloads/x: serviceaccount "x" not found`), time.Minute, 1, verdict{workload.FailedPrecondition, "service_account_missing", 0}},
		"a server that has just started":    {2, forbiddenPod("not yet ready to handle request"), time.Minute, 3, verdict{}},
		"no time for a second try":          {-1, timedOut, 90 * time.Millisecond, 1, verdict{workload.Unavailable, "kubernetes_unavailable", time.Second}},
		"a used-up quota":                   {-1, apierrors.NewForbidden(podsResource(), "w", errors.New("exceeded quota: q")), time.Minute, 1, verdict{workload.ResourceExhausted, "quota_exceeded", 10 * time.Second}},
		"a webhook that says no with a 429": {-1, denied429, time.Minute, 1, verdict{workload.FailedPrecondition, "admission_denied", 0}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, client := cluster()
				tried := failing(client, c.times, c.err)
				ctx, cancel := context.WithCancel(t.Context())
				if c.deadline > 0 {
					ctx, cancel = context.WithTimeout(t.Context(), c.deadline)
				}
				defer cancel()
				_, err := a.Start(ctx, pod("digest"), nil, nil)
				wantVerdict(t, err, c.want)
				if *tried != c.tried {
					t.Errorf("it tried %d times, not %d", *tried, c.tried)
				}
				if ctx.Err() != nil {
					t.Error("it came back after the deadline")
				}
			})
		})
	}
}

// errCutOff is what client-go says of an answer whose end is missing;
// TestCutOff sees it say so.
var errCutOff = fmt.Errorf("unexpected error when reading response body. Please retry. Original error: %w", io.ErrUnexpectedEOF)

const noDefaultAccount = `error looking up service account workloads/default: serviceaccount "default" not found`

// TestCutOff: a server that breaks the connection in the middle of its answer has
// created the Pod, and the second try finds it.
func TestCutOff(t *testing.T) {
	var requests []string
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests = append(requests, r.Method)
		answer, err := pod("digest", withUID).MarshalJSON()
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
		switch {
		case r.Method == http.MethodPost && len(requests) == 1:
			answer = answer[:20]
		case r.Method == http.MethodPost:
			w.Header().Del("Content-Length")
			w.WriteHeader(http.StatusConflict)
			answer = []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"AlreadyExists","code":409}`)
		}
		_, _ = w.Write(answer)
	}))
	defer web.Close()
	client, err := dynamic.NewForConfig(&rest.Config{Host: web.URL})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(client, nil, "workloads").Start(t.Context(), pod("digest"), nil, nil); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"POST", "POST", "GET"}, requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// TestStartTellsWhatItWaitedFor: where an answer takes long, there is no time for
// another, and the caller is told the last one instead of the deadline.
func TestStartTellsWhatItWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, s := newServer()
		tries := 0
		s.before = func(string) error {
			tries++
			time.Sleep(3 * time.Second) // of the test's own time
			return apierrors.NewInternalError(errors.New(`failed calling webhook "slow.example": context deadline exceeded`))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := a.Start(ctx, pod("digest"), nil, nil)
		wantVerdict(t, err, verdict{workload.Unavailable, "kubernetes_unavailable", time.Second})
		if tries != 2 {
			t.Errorf("it tried %d times", tries)
		}
	})
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
