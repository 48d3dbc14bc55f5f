package applier

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/agynio/k8s-runner/workload"
)

const id = "00000000-0000-4000-8000-00000000000a"

// pod is the Pod of the test workload, started by the request with a digest.
func pod(digest string, change ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	p := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod"}}
	p.SetName("workload-" + id)
	p.SetNamespace("workloads")
	p.SetAnnotations(map[string]string{"agyn.io/request-digest": digest})
	p.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "k8s-runner", "agyn.io/workload-id": id})
	for _, c := range change {
		c(p)
	}
	return p
}

func terminating(p *unstructured.Unstructured) {
	now := metav1.Now()
	p.SetDeletionTimestamp(&now)
}

func withUID(p *unstructured.Unstructured) { p.SetUID("uid") }

// cluster is an API server with objects.
func cluster(objects ...runtime.Object) (*Applier, *fake.FakeDynamicClient) {
	client := fake.NewSimpleDynamicClient(runtime.NewScheme(), objects...)
	return New(client, nil, "workloads"), client
}

func podsResource() schema.GroupResource { return schema.GroupResource{Resource: "pods"} }

// answers makes every call of verb on a resource fail with err.
func answers(client *fake.FakeDynamicClient, verb, resource string, err error) {
	client.PrependReactor(verb, resource, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err })
}

func TestStart(t *testing.T) {
	for name, c := range map[string]struct {
		there []runtime.Object
		want  verdict
	}{
		"nothing is there":         {nil, verdict{}},
		"the same request":         {[]runtime.Object{pod("digest", withUID)}, verdict{}},
		"another request":          {[]runtime.Object{pod("other", withUID)}, verdict{workload.AlreadyExists, "workload_exists", 0}},
		"a Pod of someone else":    {[]runtime.Object{pod("", withUID)}, verdict{workload.AlreadyExists, "workload_exists", 0}},
		"the same, but going":      {[]runtime.Object{pod("digest", withUID, terminating)}, verdict{workload.FailedPrecondition, "workload_terminating", 2 * time.Second}},
		"another, that is going":   {[]runtime.Object{pod("other", withUID, terminating)}, verdict{workload.FailedPrecondition, "workload_terminating", 2 * time.Second}},
		"a Pod of another name":    {[]runtime.Object{pod("other", func(p *unstructured.Unstructured) { p.SetName("workload-b") })}, verdict{}},
		"one in another namespace": {[]runtime.Object{pod("other", func(p *unstructured.Unstructured) { p.SetNamespace("others") })}, verdict{}},
	} {
		t.Run(name, func(t *testing.T) {
			a, client := cluster(c.there...)
			got, err := a.Start(context.Background(), pod("digest"), nil, nil)
			wantVerdict(t, err, c.want)
			if err == nil && (len(got) != 1 || got[0].GetName() != "workload-"+id || got[0].GetAnnotations()["agyn.io/request-digest"] != "digest") {
				t.Errorf("the Pod is %v", got)
			}
			if len(c.there) == 1 && c.want.Token != "" {
				now, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace("workloads").Get(context.Background(), "workload-"+id, metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(c.there[0].(*unstructured.Unstructured).Object, now.Object); diff != "" {
					t.Errorf("the Pod was changed (-was +is):\n%s", diff)
				}
			}
		})
	}
}

func wantVerdict(t *testing.T, err error, want verdict) {
	t.Helper()
	var got verdict
	var e *workload.Error
	if errors.As(err, &e) {
		got = verdict{e.Kind, e.Token, e.RetryAfter}
	} else if err != nil {
		t.Errorf("the error is %v", err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("verdict (-want +got):\n%s", diff)
	}
}

func TestStartWhileThePodGoes(t *testing.T) {
	for times, want := range map[int]verdict{
		maxStarts - 1: {},
		maxStarts:     {workload.Unavailable, "changed_meanwhile", time.Second},
	} {
		a, client := cluster()
		failing(client, times, apierrors.NewAlreadyExists(podsResource(), "workload-"+id))
		_, err := a.Start(context.Background(), pod("digest"), nil, nil) // there at first, and then not
		wantVerdict(t, err, want)
	}
}

func TestStartExplains(t *testing.T) {
	a, client := cluster()
	answers(client, "create", "pods", apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "workloads"))
	_, err := a.Start(context.Background(), pod("digest"), nil, nil)
	wantVerdict(t, err, verdict{workload.FailedPrecondition, "namespace_missing", 0})
}

// deletions are those that were asked for.
func deletions(client *fake.FakeDynamicClient) (all []clienttesting.DeleteActionImpl) {
	for _, action := range client.Actions() {
		if deletion, ok := action.(clienttesting.DeleteActionImpl); ok {
			all = append(all, deletion)
		}
	}
	return all
}

func TestDelete(t *testing.T) {
	for name, grace := range map[string]*int64{"the Pod's own": nil, "none": new(int64)} {
		t.Run(name, func(t *testing.T) {
			a, client := cluster(pod("digest", withUID))
			if err := a.Delete(context.Background(), id, "uid", grace); err != nil {
				t.Fatal(err)
			}
			if n := len(client.Actions()); n != 1 {
				t.Errorf("it takes %d requests", n)
			}
			deletion := deletions(client)[0]
			if diff := cmp.Diff(grace, deletion.DeleteOptions.GracePeriodSeconds); diff != "" || deletion.Name != "workload-"+id || deletion.Namespace != "workloads" {
				t.Errorf("it deletes %s/%s with %v", deletion.Namespace, deletion.Name, deletion.DeleteOptions)
			}
			// It is gone now.
			wantVerdict(t, a.Delete(context.Background(), id, "uid", grace), verdict{workload.NotFound, "workload_not_found", 0})
		})
	}
	a, client := cluster(pod("digest"))
	answers(client, "delete", "pods", apierrors.NewServiceUnavailable("x"))
	wantVerdict(t, a.Delete(context.Background(), id, "uid", nil), verdict{workload.Unavailable, "kubernetes_unavailable", time.Second})
}

// TestDeleteOfWhatReadsDoNotShow: the Pod of another replica, just started, is
// deleted, one that only has the name of a workload's is not.
func TestDeleteOfWhatReadsDoNotShow(t *testing.T) {
	absent := verdict{workload.NotFound, "workload_not_found", 0}
	for name, c := range map[string]struct {
		there *unstructured.Unstructured
		want  verdict
	}{
		"the runner's":    {pod("digest", withUID), verdict{}},
		"of someone else": {pod("digest", withUID, foreign), absent},
		"without an id": {pod("digest", withUID, func(p *unstructured.Unstructured) {
			p.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "k8s-runner"})
		}), absent},
	} {
		for _, uid := range []string{"", "of-an-earlier-Pod"} {
			t.Run(name+" "+uid, func(t *testing.T) {
				a, s := newServer(c.there)
				wantVerdict(t, a.Delete(t.Context(), id, uid, nil), c.want)
				if there := s.named(t, "pods", podName) != nil; there != (c.want == absent) {
					t.Errorf("the Pod is there: %v", there)
				}
			})
		}
	}
	a, s := newServer()
	wantVerdict(t, a.Delete(t.Context(), id, "", nil), absent)
	answers(s.FakeDynamicClient, "get", "pods", apierrors.NewServiceUnavailable("x"))
	wantVerdict(t, a.Delete(t.Context(), id, "", nil), verdict{workload.Unavailable, "kubernetes_unavailable", time.Second})
}

func TestTouch(t *testing.T) {
	at := time.Date(2001, 2, 3, 4, 5, 6, 7, time.FixedZone("", 3600))
	a, client := cluster()
	var sent map[string]any
	client.PrependReactor("patch", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch := action.(clienttesting.PatchActionImpl)
		// What somebody else has noted there is the runner's all the same.
		if patch.GetPatchType() != types.ApplyPatchType || patch.GetName() != "workload-"+id || !*patch.PatchOptions.Force || patch.PatchOptions.FieldManager != "k8s-runner" {
			t.Errorf("it is %+v", patch)
		}
		return true, pod("digest"), json.Unmarshal(patch.GetPatch(), &sent)
	})
	if err := a.Touch(context.Background(), id, "uid", at); err != nil {
		t.Fatal(err)
	}
	// Nothing but the note, and the UID, which keeps it from making a new Pod.
	want := map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{
		"name": "workload-" + id, "uid": "uid", "annotations": map[string]any{"agyn.io/touched-at": "2001-02-03T03:05:06.000000007Z"},
	}}
	if diff := cmp.Diff(want, sent); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n := len(client.Actions()); n != 1 {
		t.Errorf("it takes %d requests", n)
	}
}

// The API server's words for a Pod that is gone, for one that has another's
// name, and for one that somebody else has just changed.
func errGone() error {
	return apierrors.NewConflict(podsResource(), podName, errors.New("uid mismatch: the provided object specified uid uid, and no existing object was found"))
}

func errImmutable() error {
	return apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, podName, field.ErrorList{field.Invalid(field.NewPath("metadata", "uid"), "uid", "field is immutable")})
}

func errModified() error {
	return apierrors.NewConflict(podsResource(), podName, errors.New("the object has been modified; please apply your changes to the latest version and try again"))
}

// TestTouchFindsThePod that reads do not show, or no longer as it is.
func TestTouchFindsThePod(t *testing.T) {
	absent := verdict{workload.NotFound, "workload_not_found", 0}
	unavailable := verdict{workload.Unavailable, "changed_meanwhile", time.Second}
	for name, c := range map[string]struct {
		there   *unstructured.Unstructured
		uid     string
		times   int
		err     error
		touches int
		want    verdict
	}{
		"of another replica":           {pod("digest", withUID), "", 0, nil, 1, verdict{}},
		"another Pod by now":           {pod("digest", withUID), "earlier", 1, errImmutable(), 2, verdict{}},
		"changed at the same time":     {pod("digest", withUID), "uid", 2, errModified(), 3, verdict{}},
		"changed all the time":         {pod("digest", withUID), "uid", -1, errModified(), maxTries, unavailable},
		"gone":                         {nil, "uid", 1, errGone(), 1, absent},
		"gone, in other words":         {nil, "uid", 1, apierrors.NewNotFound(podsResource(), podName), 1, absent},
		"of someone else":              {pod("digest", withUID, foreign), "", 0, nil, 0, absent},
		"absent":                       {nil, "", 0, nil, 0, absent},
		"a webhook that says no so":    {pod("digest", withUID), "uid", -1, apiError(409, metav1.StatusReasonConflict, `admission webhook "p" denied the request: no`, nil), 1, verdict{workload.FailedPrecondition, "admission_denied", 0}},
		"the server asks for patience": {pod("digest", withUID), "uid", -1, apierrors.NewTooManyRequests("x", 3), 1, verdict{workload.Unavailable, "kubernetes_unavailable", 3 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			var there []runtime.Object
			if c.there != nil {
				there = append(there, c.there)
			}
			a, s := newServer(there...)
			touches := 0
			s.before = func(string) error {
				if touches++; c.times >= 0 && touches > c.times {
					return nil
				}
				return c.err
			}
			wantVerdict(t, a.Touch(t.Context(), id, c.uid, time.Now()), c.want)
			if touches != c.touches {
				t.Errorf("it tried %d times", touches)
			}
		})
	}
}
