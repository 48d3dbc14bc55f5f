//go:build e2e

package e2e

import (
	"os/exec"
	"strings"
	"testing"

	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

// TestReflection: a caller without the schema can ask for it.
func TestReflection(t *testing.T) {
	r := startRunner(t, newNamespace(t))
	stream, err := reflectionv1.NewServerReflectionClient(r.conn).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&reflectionv1.ServerReflectionRequest{
		MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{},
	}); err != nil {
		t.Fatal(err)
	}
	answer, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(answer.String(), "agynio.api.runner.v1.RunnerService") {
		t.Errorf("reflection lists %v", answer)
	}
}

// TestLogLines: one line a call, with its method and code, and no payload.
func TestLogLines(t *testing.T) {
	r := startRunner(t, newNamespace(t))
	cordon(t, r.namespace)
	req := sleeper()
	req.Main.Env = []*runnerv1.EnvVar{{Name: "TOKEN", Value: "s3cr3t"}}
	r.start(t, req)
	req.Main.Image = "Not An Image s3cr3t-not"
	_, _ = r.StartWorkload(t.Context(), req)
	r.stop(t)
	log := r.log.String()
	if got := strings.Count(log, "grpc.method=StartWorkload"); got != 2 {
		t.Errorf("two calls made %d lines\n%s", got, log)
	}
	if strings.Contains(log, "s3cr3t\"") || strings.Contains(log, "TOKEN") {
		t.Errorf("the log holds a payload\n%s", log)
	}
}

// TestRefusesToStart: a bad setting stops the start with its name, and a
// cluster that is not there with its own.
func TestRefusesToStart(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		env  string
		want string
	}{
		"no namespace":  {want: "KUBE_NAMESPACE"},
		"bad value":     {args: []string{"--kube-namespace", "x"}, env: "PVC_STORAGE_SIZE=big", want: "PVC_STORAGE_SIZE"},
		"plaintext":     {args: []string{"--kube-namespace", "x"}, want: "K8SRUNNER_GRPC_PLAINTEXT"},
		"no TLS file":   {args: []string{"--kube-namespace", "x", "--tls-cert", "/no/such/cert", "--tls-key", "/no/such/key"}, want: "K8SRUNNER_TLS_CERT"},
		"no kubeconfig": {args: []string{"--kube-namespace", "x", "--grpc-address", "127.0.0.1:0", "--kube-kubeconfig", "/no/such/file"}, want: "kube.kubeconfig"},
		"no catalog":    {args: []string{"--kube-namespace", "x", "--grpc-address", "127.0.0.1:0"}, env: "CATALOG_PATH=/no/such/file", want: "CATALOG_PATH"},
		"overlay":       {args: []string{"--kube-namespace", "x"}, env: "ZITI_ENABLED=true", want: "ZITI_ENABLED"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(suite.binary, append([]string{"serve"}, test.args...)...)
			if test.env != "" {
				cmd.Env = []string{test.env}
			} else {
				cmd.Env = []string{}
			}
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), test.want) {
				t.Errorf("it ended with %v and\n%s", err, out)
			}
		})
	}
}
