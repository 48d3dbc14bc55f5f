//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/render/golden"
	"github.com/agynio/k8s-runner/request"
)

// enforce makes the namespace admit only Pods of a Pod Security level.
func enforce(t *testing.T, ns *namespace, level string) {
	t.Helper()
	patch := []byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"` + level + `"}}}`)
	if _, err := suite.admin.CoreV1().Namespaces().Patch(t.Context(), ns.name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestRestricted starts every golden request in a namespace that enforces the
// restricted level: each is admitted, or refused before a Pod exists.
func TestRestricted(t *testing.T) {
	ns := newNamespace(t)
	enforce(t, ns, "restricted")
	r := startRunner(t, ns, "--security-profile", "restricted", "--security-run-as-user", "12345",
		"--capabilities-implementations", `{"docker":"rootless"}`)

	req := sleeper()
	req.Main = shell("id -u; exit 0")
	r.start(t, req)
	r.await(t, req.GetWorkloadId(), "it has ended", ended)
	if got := r.containerLog(t, req.GetWorkloadId(), "main"); got != "12345\n" {
		t.Errorf("it printed %q", got)
	}

	cordon(t, ns.name)
	cases, err := golden.Cases(os.DirFS("../testdata/cases"))
	if err != nil {
		t.Fatal(err)
	}
	started := 0
	for _, name := range cases {
		data, err := os.ReadFile(filepath.Join("../testdata/cases", name, golden.RequestFile))
		if err != nil {
			t.Fatal(err)
		}
		req, err := request.Unmarshal(data)
		if err != nil {
			t.Fatal(err)
		}
		req.WorkloadId = ""
		for _, v := range req.GetVolumes() {
			v.PersistentName = "" // cases share names, and claims stay
			v.Labels = nil
		}
		switch resp, err := r.StartWorkload(t.Context(), req); status.Code(err) {
		case codes.OK:
			started++
			if _, err := r.RemoveWorkload(t.Context(), &runnerv1.RemoveWorkloadRequest{WorkloadId: resp.GetId(), Force: true, RemoveVolumes: true}); err != nil {
				t.Errorf("%s: removing it: %v", name, err)
			}
		case codes.InvalidArgument:
		default:
			t.Errorf("%s: %v", name, err)
		}
	}
	if started < 20 {
		t.Errorf("only %d cases were started", started)
	}
}

// TestPodSecurityDenies: what the namespace does not admit is told apart, and
// leaves nothing.
func TestPodSecurityDenies(t *testing.T) {
	ns := newNamespace(t)
	enforce(t, ns, "restricted")
	r := startRunner(t, ns)
	_, err := r.StartWorkload(t.Context(), sleeper())
	wantError(t, err, codes.FailedPrecondition, "POD_SECURITY_DENIED")
	if left := r.podNames(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
