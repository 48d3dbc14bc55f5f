//go:build e2e

package e2e

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

// nonRoot is an image whose user is 12345.
const nonRoot = "busybox:nonroot"

// TestNonRootWrites: an image that is not root writes its ephemeral volume and
// its claim, and the claim outlives the workload with what is in it.
func TestNonRootWrites(t *testing.T) {
	r := startRunner(t, newNamespace(t))
	request := func(script string) *runnerv1.StartWorkloadRequest {
		main := shell(script)
		main.Image = nonRoot
		main.Mounts = []*runnerv1.VolumeMount{{Volume: "scratch", MountPath: "/scratch"}, {Volume: "data", MountPath: "/data"}}
		return &runnerv1.StartWorkloadRequest{
			WorkloadId: uuid.NewString(),
			Main:       main,
			Volumes: []*runnerv1.VolumeSpec{
				{Name: "scratch", Kind: runnerv1.VolumeKind_VOLUME_KIND_EPHEMERAL, Size: "8Mi"},
				{Name: "data", Kind: runnerv1.VolumeKind_VOLUME_KIND_NAMED, Size: "64Mi", Labels: map[string]string{"volume_key": "k"}},
			},
		}
	}
	write := request("id -u; cat /data/* 2>/dev/null; echo one > /scratch/a && echo two > /data/a && cat /scratch/a /data/a")
	r.start(t, write)
	id := write.GetWorkloadId()
	r.await(t, id, "it has ended", ended)
	if got := r.containerLog(t, id, "main"); got != "12345\none\ntwo\n" {
		t.Errorf("the first workload printed %q", got)
	}
	if _, err := r.RemoveWorkload(t.Context(), &runnerv1.RemoveWorkloadRequest{WorkloadId: id, Force: true}); err != nil {
		t.Fatal(err)
	}
	read := request("cat /data/a; ls /scratch")
	r.start(t, read)
	r.await(t, read.GetWorkloadId(), "the second has ended", ended)
	if got := r.containerLog(t, read.GetWorkloadId(), "main"); got != "two\n" {
		t.Errorf("the second workload printed %q", got)
	}
}

// TestInlineFiles: each is a read-only file with its exact bytes, and what the
// image has beside it stays visible.
func TestInlineFiles(t *testing.T) {
	ns := newNamespace(t)
	r := startRunner(t, ns)
	var all [256]byte
	for i := range all {
		all[i] = byte(i)
	}
	first, second := all[:], []byte("$(HOME) $$\nüñî")
	main := shell(`base64 -w0 /etc/inline.conf; echo; base64 -w0 /etc/app/deep/inline.conf; echo; ls /etc/passwd /etc/group
echo x 2>/dev/null > /etc/inline.conf || echo read-only; rm /etc/inline.conf 2>/dev/null || echo stays; id -u`)
	main.Image = nonRoot
	main.InlineFileMounts = []*runnerv1.InlineFileMount{{Path: "/etc/inline.conf"}, {Path: "/etc/app/deep/inline.conf"}}
	req := &runnerv1.StartWorkloadRequest{
		WorkloadId:  uuid.NewString(),
		Main:        main,
		InlineFiles: map[string][]byte{"/etc/inline.conf": first, "/etc/app/deep/inline.conf": second},
	}
	r.start(t, req)
	id := req.GetWorkloadId()
	r.await(t, id, "it has ended", ended)
	want := base64.StdEncoding.EncodeToString(first) + "\n" + base64.StdEncoding.EncodeToString(second) +
		"\n/etc/group\n/etc/passwd\nread-only\nstays\n12345\n"
	if got := r.containerLog(t, id, "main"); got != want {
		t.Errorf("the workload printed\n%s\nand not\n%s", got, want)
	}
	secret, err := suite.admin.CoreV1().Secrets(ns.name).Get(t.Context(), "workload-"+id+"-inline-files", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if owners := secret.OwnerReferences; len(owners) != 1 || owners[0].UID != r.pod(t, id).UID {
		t.Errorf("the Secret's owners are %v", owners)
	}
	if strings.Contains(r.log.String(), base64.StdEncoding.EncodeToString(second)) || strings.Contains(r.log.String(), string(second)) {
		t.Error("the log holds the file")
	}
}

// TestInlineFilesUpToTheLimit: a Secret takes 1 MiB, to the byte.
func TestInlineFilesUpToTheLimit(t *testing.T) {
	r := startRunner(t, newNamespace(t))
	main := shell("wc -c < /a; md5sum /a")
	main.InlineFileMounts = []*runnerv1.InlineFileMount{{Path: "/a"}}
	req := &runnerv1.StartWorkloadRequest{
		WorkloadId: uuid.NewString(), Main: main,
		InlineFiles: map[string][]byte{"/a": bytes.Repeat([]byte("x"), 1<<20)},
	}
	r.start(t, req)
	r.await(t, req.GetWorkloadId(), "it has ended", ended)
	if got := r.containerLog(t, req.GetWorkloadId(), "main"); !strings.HasPrefix(got, "1048576\n") {
		t.Errorf("the workload printed %q", got)
	}
}
