//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

// full returns a request with all that makes objects beside the Pod: a pull
// credential, an inline file and a named volume, called after it and content.
func full(id, content string) *runnerv1.StartWorkloadRequest {
	req := sleeper()
	req.WorkloadId = id
	req.ImagePullCredentials = []*runnerv1.ImagePullCredential{{Registry: "registry.test", Username: content, Password: content}}
	req.InlineFiles = map[string][]byte{"/file": []byte(content)}
	req.Main.InlineFileMounts = []*runnerv1.InlineFileMount{{Path: "/file"}}
	req.Volumes = []*runnerv1.VolumeSpec{{
		Name: "v", Kind: runnerv1.VolumeKind_VOLUME_KIND_NAMED, PersistentName: fullClaim(id, content), Size: "1Mi",
	}}
	req.Main.Mounts = []*runnerv1.VolumeMount{{Volume: "v", MountPath: "/v"}}
	return req
}

func fullClaim(id, content string) string { return "claim-" + content + "-" + id }

// checkFull reports what is wrong with what a started full(id, content) has made.
func checkFull(t testing.TB, namespace, id, content string) error {
	t.Helper()
	core := suite.admin.CoreV1()
	pod, err := core.Pods(namespace).Get(t.Context(), "workload-"+id, metav1.GetOptions{})
	if err != nil {
		return err
	}
	var wrong []error
	if len(pod.Spec.SchedulingGates) > 0 {
		wrong = append(wrong, fmt.Errorf("the Pod has the gates %v", pod.Spec.SchedulingGates))
	}
	for _, name := range []string{"-pull", "-inline-files"} {
		secret, err := core.Secrets(namespace).Get(t.Context(), pod.Name+name, metav1.GetOptions{})
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		whole := ""
		for _, data := range secret.Data {
			whole += string(data)
		}
		if len(secret.OwnerReferences) != 1 || secret.OwnerReferences[0].UID != pod.UID || !strings.Contains(whole, content) {
			wrong = append(wrong, fmt.Errorf("the Secret %s of %v holds %q", secret.Name, secret.OwnerReferences, whole))
		}
	}
	if _, err := core.PersistentVolumeClaims(namespace).Get(t.Context(), fullClaim(id, content), metav1.GetOptions{}); err != nil {
		wrong = append(wrong, err)
	}
	return errors.Join(wrong...)
}

// wantNoGates wants no start of the namespace to be half done.
func wantNoGates(t testing.TB, namespace string) {
	t.Helper()
	eventually(t, 30*time.Second, "no start is half done", func() error {
		pods, err := suite.admin.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, p := range pods.Items {
			if len(p.Spec.SchedulingGates) > 0 && p.DeletionTimestamp == nil {
				return fmt.Errorf("the Pod %s has the gates %v", p.Name, p.Spec.SchedulingGates)
			}
		}
		return nil
	})
}
