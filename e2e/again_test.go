//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/workload"
)

// once bends a transport so that the first request of this method, whose path
// ends so, goes through first and then has the answer that instead makes of it.
func once(method, path string, instead func(*http.Response, error) (*http.Response, error)) func(http.RoundTripper) transport {
	var done atomic.Bool
	return func(real http.RoundTripper) transport {
		return func(req *http.Request) (*http.Response, error) {
			if req.Method == method && strings.HasSuffix(req.URL.Path, path) && done.CompareAndSwap(false, true) {
				return instead(real.RoundTrip(req))
			}
			return real.RoundTrip(req)
		}
	}
}

// loses loses the answer.
func loses(resp *http.Response, err error) (*http.Response, error) {
	if err == nil {
		resp.Body.Close()
	}
	return nil, errors.New("connection reset by peer")
}

// cuts breaks the connection in the middle of the answer.
func cuts(resp *http.Response, err error) (*http.Response, error) {
	if err == nil {
		resp.Body = &cutBody{io.LimitReader(resp.Body, 20), resp.Body}
	}
	return resp, err
}

type cutBody struct {
	io.Reader
	io.Closer
}

func (b *cutBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// TestLostReply (C33): the Pod is created, or its gate is lifted, and nobody hears
// of it.
func TestLostReply(t *testing.T) {
	ns := newNamespace(t)
	cordon(t, ns.name)
	for name, instead := range map[string]func(*http.Response, error) (*http.Response, error){"lost": loses, "cut off": cuts} {
		for _, method := range []string{http.MethodPost, http.MethodPatch} {
			id := newID()
			path := "/pods"
			if method == http.MethodPatch {
				path += "/" + workload.PodName(id)
			}
			if err := newSet(id, "1").start(t.Context(), newApplier(t, ns, once(method, path, instead))); err != nil {
				t.Fatalf("%s of a %s: %v", name, method, err)
			}
			wantWhole(t, ns.name, id, "1")
		}
	}
}

// TestLostReplyOfWhatIsRefused: the corrected request has the id.
func TestLostReplyOfWhatIsRefused(t *testing.T) {
	ns := newNamespace(t)
	cordon(t, ns.name)
	newClaim(t, ns.name, "foreign", "key-1", func(c *corev1.PersistentVolumeClaim) { delete(c.Labels, workload.LabelManagedBy) })
	id := newID()
	wrong := newSet(id, "1")
	wrong.claims[0].SetName("foreign")
	a := newApplier(t, ns, once(http.MethodPost, "/pods", loses))
	wantDomain(t, wrong.start(t.Context(), a), workload.FailedPrecondition, "claim_not_ours", "foreign")
	wantNothingOwned(t, ns.name)
	if err := newSet(id, "2").start(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	wantWhole(t, ns.name, id, "2")
}

// TestStartMeetsAnUndo: a Pod that another call has made, and takes away again,
// is made anew, with all that goes with it.
func TestStartMeetsAnUndo(t *testing.T) {
	ns := newNamespace(t)
	cordon(t, ns.name)
	id := newID()
	if err := newSet(id, "1").start(t.Context(), newApplier(t, ns, crashes(5, false))); err == nil {
		t.Fatal("it succeeds")
	}
	undone := newApplier(t, ns, func(real http.RoundTripper) transport {
		var undo sync.Once
		return func(req *http.Request) (*http.Response, error) {
			if req.Method == http.MethodPatch && strings.HasSuffix(req.URL.Path, "/pods/"+workload.PodName(id)) {
				undo.Do(func() { deletePod(t, ns.name, id) })
			}
			return real.RoundTrip(req)
		}
	})
	if err := newSet(id, "1").start(t.Context(), undone); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second) // whatever the collector still does, it has done
	wantWhole(t, ns.name, id, "1")
}

// TestRemoveOfWhatIsHeld (C42): a finalizer keeps the Pod, and the caller is told.
func TestRemoveOfWhatIsHeld(t *testing.T) {
	ns := newNamespace(t)
	cordon(t, ns.name)
	r := startRunner(t, ns)
	id := newID()
	s := newSet(id, "1")
	s.pod.SetFinalizers([]string{"e2e.test/held"})
	t.Cleanup(func() { release(t, ns.name, "pods", workload.PodName(id)) })
	if err := s.start(t.Context(), newApplier(t, ns, nil)); err != nil {
		t.Fatal(err)
	}
	remove := func(force, volumes bool) error {
		_, err := r.RemoveWorkload(t.Context(), &runnerv1.RemoveWorkloadRequest{WorkloadId: id, Force: force, RemoveVolumes: volumes})
		return err
	}
	if err := remove(false, false); err != nil {
		t.Errorf("without force it returns %v", err)
	}
	for _, volumes := range []bool{false, true} {
		err := remove(true, volumes)
		wantError(t, err, codes.FailedPrecondition, "WORKLOAD_TERMINATING")
		if retry := detail[*errdetails.RetryInfo](status.Convert(err)); retry.GetRetryDelay().AsDuration() <= 0 || !strings.Contains(err.Error(), "e2e.test/held") {
			t.Errorf("it tells %v, to be tried again after %v", err, retry)
		}
	}
	release(t, ns.name, "pods", workload.PodName(id))
	eventually(t, 30*time.Second, "the Pod is gone", func() error {
		if err := remove(true, false); status.Code(err) != codes.NotFound {
			return fmt.Errorf("it answers %w", err)
		}
		return nil
	})
}

// TestTouchThroughAnotherReplica: one that does not show the Pod yet touches it
// all the same, and many at once do.
func TestTouchThroughAnotherReplica(t *testing.T) {
	ns := newNamespace(t)
	cordon(t, ns.name)
	r := startRunner(t, ns)
	a := newApplier(t, ns, nil)
	for range 20 {
		id := newID()
		if _, err := a.Start(t.Context(), newSet(id, "1").pod, nil, nil); err != nil {
			t.Fatal(err)
		}
		var touches sync.WaitGroup
		for range 5 {
			touches.Go(func() {
				if _, err := r.TouchWorkload(t.Context(), &runnerv1.TouchWorkloadRequest{WorkloadId: id}); err != nil {
					t.Error(err)
				}
			})
		}
		touches.Wait()
		if r.pod(t, id).Annotations[workload.AnnotationTouchedAt] == "" {
			t.Error("it is not touched")
		}
		// Another Pod under this name is another Pod, and touched by its id.
		earlier := string(r.pod(t, id).UID)
		deletePod(t, ns.name, id)
		wantDomain(t, a.Touch(t.Context(), id, earlier, time.Now()), workload.NotFound, "workload_not_found", id)
		if _, err := a.Start(t.Context(), newSet(id, "2").pod, nil, nil); err != nil {
			t.Fatal(err)
		}
		if err := a.Touch(t.Context(), id, earlier, time.Now()); err != nil {
			t.Error(err)
		}
	}
}

// TestNewNamespace: a namespace has its default account a moment after it was
// made; a start waits for it. Here a quota keeps it away.
func TestNewNamespace(t *testing.T) {
	ns := newNamespace(t)
	cordon(t, ns.name)
	core := suite.admin.CoreV1()
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: corev1.ResourceQuotaSpec{
		Hard: corev1.ResourceList{"count/serviceaccounts": *newQuantity("0")},
	}}
	if _, err := core.ResourceQuotas(ns.name).Create(t.Context(), quota, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 30*time.Second, "there is no account", func() error {
		_ = core.ServiceAccounts(ns.name).Delete(t.Context(), "default", metav1.DeleteOptions{})
		time.Sleep(200 * time.Millisecond) // it would be there again
		_, err := core.ServiceAccounts(ns.name).Get(t.Context(), "default", metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("there is: %w", err)
		}
		return nil
	})
	short, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	s := newSet(newID(), "1")
	_, err := newApplier(t, ns, nil).Start(short, s.pod, nil, nil)
	wantDomain(t, err, workload.FailedPrecondition, "service_account_missing", ns.name+"/default")

	refused := make(chan struct{})
	var first sync.Once
	waits := newApplier(t, ns, func(real http.RoundTripper) transport {
		return func(req *http.Request) (*http.Response, error) {
			resp, err := real.RoundTrip(req)
			if err == nil && resp.StatusCode == http.StatusForbidden {
				first.Do(func() { close(refused) })
			}
			return resp, err
		}
	})
	result := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := waits.Start(ctx, s.pod, nil, nil)
		result <- err
	}()
	<-refused
	if err := core.ResourceQuotas(ns.name).Delete(t.Context(), "q", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	if _, err := core.ServiceAccounts(ns.name).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Log(err) // there it is
	}
	if err := <-result; err != nil {
		t.Error(err)
	}
}
