//go:build e2e

package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

// TestCredentialOnDisk: a token that is renewed on disk counts without a restart, for
// writes, for the watch, and for commands. Until it is there, callers are told.
func TestCredentialOnDisk(t *testing.T) {
	ns := newNamespace(t)
	token := filepath.Join(t.TempDir(), "token")
	write := func(value string) {
		t.Helper()
		if err := os.WriteFile(token, []byte(value), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(ns.token)
	config, err := clientcmd.LoadFromFile(ns.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &api.AuthInfo{TokenFile: token}
	}
	if err := clientcmd.WriteToFile(*config, ns.kubeconfig); err != nil {
		t.Fatal(err)
	}
	r := startRunner(t, ns)
	id := r.sleeping(t)
	r.await(t, id, "it runs", running)

	accounts := suite.admin.CoreV1().ServiceAccounts(ns.name)
	if err := accounts.Delete(t.Context(), accountName, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: accountName}}
	if _, err := accounts.Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// The API server remembers for some seconds whose a token was.
	eventually(t, time.Minute, "the old token does not count any more", func() error {
		_, err := r.StartWorkload(t.Context(), sleeper())
		if err == nil {
			return errors.New("it counts")
		}
		wantError(t, err, codes.Unavailable, "RUNNER_CREDENTIAL_REJECTED")
		return nil
	})
	renewed, err := accounts.CreateToken(t.Context(), accountName, &authv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	write(renewed.Status.Token)
	eventually(t, 90*time.Second, "the new one does", func() error {
		_, err := r.StartWorkload(t.Context(), sleeper())
		if err != nil && status.Code(err) != codes.Unavailable {
			t.Error(err)
		}
		return err
	})
	if exit := r.run(t, script(id, "exit 3")).exit; exit.GetExitCode() != 3 {
		t.Errorf("a command ends with %v", exit)
	}
	patch := []byte(`{"metadata":{"labels":{"renewed":"yes"}}}`)
	if _, err := suite.admin.CoreV1().Pods(ns.name).Patch(t.Context(), "workload-"+id, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	r.await(t, id, "the watch shows a change", func(w *runnerv1.InspectWorkloadResponse) bool { return w.GetConfigLabels()["renewed"] == "yes" })
}
