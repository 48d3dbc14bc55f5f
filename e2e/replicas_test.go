//go:build e2e

package e2e

import (
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/workload"
)

// TestTwoRunners: of fifty starts of one id at once, through two runners and with
// two requests, one request wins, whole; all its callers are told so, and all the
// others that the id is taken, whose request leaves nothing.
func TestTwoRunners(t *testing.T) {
	const callers, rounds = 50, 5
	ns := newNamespace(t)
	cordon(t, ns.name)
	runners := []*runner{startRunner(t, ns), startRunner(t, ns)}
	render := newEngine(t, ns.name, false)
	var secrets, claims []string
	for range rounds {
		id := newID()
		contents := []string{"one", "two"}
		outcomes := make([]error, callers)
		var all sync.WaitGroup
		begin := make(chan struct{})
		for i := range callers {
			all.Go(func() {
				req := full(id, contents[i%2])
				<-begin
				_, outcomes[i] = runners[i/2%2].StartWorkload(t.Context(), req)
			})
		}
		close(begin)
		all.Wait()
		won := runners[0].pod(t, id).Annotations[workload.AnnotationDigest]
		winner := slices.IndexFunc(contents, func(content string) bool {
			_, manifests, err := render.Render(full(id, content))
			return err == nil && manifests.Pod.GetAnnotations()[workload.AnnotationDigest] == won
		})
		if winner < 0 {
			t.Fatalf("the Pod has the digest %q of neither request", won)
		}
		for i, err := range outcomes {
			if i%2 == winner {
				if err != nil {
					t.Errorf("a caller of the winner is told %v", err)
				}
				continue
			}
			wantError(t, err, codes.AlreadyExists, "WORKLOAD_EXISTS")
		}
		if err := checkFull(t, ns.name, id, contents[winner]); err != nil {
			t.Error(err)
		}
		secrets = append(secrets, workload.PodName(id)+"-inline-files", workload.PodName(id)+"-pull")
		claims = append(claims, fullClaim(id, contents[winner]))
		for _, r := range runners { // each shows what the other made, at once or when its watch has it
			r.await(t, id, "it is shown", func(*runnerv1.InspectWorkloadResponse) bool { return true })
		}
	}
	slices.Sort(secrets)
	slices.Sort(claims)
	list, err := suite.admin.CoreV1().Secrets(ns.name).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var there []string
	for _, s := range list.Items {
		there = append(there, s.Name)
	}
	slices.Sort(there)
	if diff := cmp.Diff(secrets, there); diff != "" {
		t.Errorf("the Secrets (-of the winners +there):\n%s", diff)
	}
	if diff := cmp.Diff(claims, claimNames(t, ns.name)); diff != "" {
		t.Errorf("the claims (-of the winners +there):\n%s", diff)
	}
}
