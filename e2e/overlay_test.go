//go:build e2e

package e2e

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	runnersv1 "github.com/agynio/k8s-runner/proto/agynio/api/runners/v1"
	"github.com/agynio/k8s-runner/tlsfiles/certs"
)

// overlayEnrolment is that of a runner on the overlay whose controller is at url, and
// trusted by ca.
func overlayEnrolment(t testing.TB, url, ca string) (enrolment *runnersv1.EnrollRunnerResponse, key string) {
	t.Helper()
	pair := certs.New(t).Pair(t)
	identity, err := json.Marshal(map[string]any{"ztAPI": url + "/edge/client/v1", "id": map[string]string{
		"cert": "pem:" + pair.Cert, "key": "pem:" + pair.Key, "ca": "pem:" + ca,
	}})
	if err != nil {
		t.Fatal(err)
	}
	return &runnersv1.EnrollRunnerResponse{ServiceName: "runner-7", IdentityId: "identity", IdentityJson: identity}, strings.Split(pair.Key, "\n")[1]
}

// wantDoor fails unless the TCP listener answers health and Ready, and nothing else.
func (r *runner) wantDoor(t *testing.T) {
	t.Helper()
	if _, err := r.Ready(t.Context(), &runnerv1.ReadyRequest{}); err != nil {
		t.Errorf("Ready: %v", err)
	}
	_, err := r.StartWorkload(t.Context(), sleeper())
	wantError(t, err, codes.PermissionDenied, "OVERLAY_ONLY")
	_, err = r.ListWorkloads(t.Context(), &runnerv1.ListWorkloadsRequest{})
	wantError(t, err, codes.PermissionDenied, "OVERLAY_ONLY")
	exec, err := r.Exec(t.Context())
	if err == nil {
		_, err = exec.Recv()
	}
	wantError(t, err, codes.PermissionDenied, "OVERLAY_ONLY")
}

// TestOverlayThatIsAway: a runner whose overlay nobody reaches stays, is not ready, and
// is no door into the API meanwhile; a restart uses the identity that it has kept.
func TestOverlayThatIsAway(t *testing.T) {
	p := newPlatform(t)
	var key string
	p.Enrolment, key = overlayEnrolment(t, "https://127.0.0.1:1", certs.New(t).PEM)
	kept := filepath.Join(t.TempDir(), "identity.json")
	ns := newNamespace(t)
	flags := p.flags("--ziti-enabled=true", "--ziti-identity-file", kept)
	for range 2 {
		r := startRunner(t, ns, flags...)
		eventually(t, 10*time.Second, "it says why it is not ready", func() error {
			if code, text := r.get(t, "/readyz"); code != 503 || !strings.Contains(text, "overlay: ") {
				return fmt.Errorf("it is %d %s", code, text)
			}
			return nil
		})
		r.wantDoor(t)
		if info, err := os.Stat(kept); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the identity file is %v, %v", info, err)
		}
		if log := r.log.String(); strings.Contains(log, key) || strings.Contains(log, serviceToken) {
			t.Errorf("the log tells a secret:\n%s", log)
		}
		r.stop(t)
	}
	if n := p.Enrolled(); n != 1 {
		t.Errorf("it enrolled %d times", n)
	}
	if n := len(p.Catalogs()); n != 2 || p.Catalogs()[1].GetRunnerId() != "7" {
		t.Errorf("it told %d catalogs", n)
	}
}

// TestLostIdentity: a runner whose identity the overlay refuses again and again ends
// with that reason, and does not keep it.
func TestLostIdentity(t *testing.T) {
	controller := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/version") {
			_, _ = w.Write([]byte(`{"data":{"version":"v1.5.0","capabilities":[]},"meta":{}}`))
			return
		}
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"error":{"code":"INVALID_AUTH","message":"The authentication request failed","requestId":"r"},"meta":{}}`))
	}))
	defer controller.Close()
	p := newPlatform(t)
	p.Enrolment, _ = overlayEnrolment(t, controller.URL, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: controller.Certificate().Raw})))
	kept := filepath.Join(t.TempDir(), "identity.json")
	r := launchRunner(t, newNamespace(t), p.flags("--ziti-enabled=true", "--ziti-identity-file", kept)...)
	r.wantEnd(t, time.Minute, "the runner has lost its identity")
	if _, err := os.Stat(kept); !os.IsNotExist(err) {
		t.Errorf("the identity is kept: %v", err)
	}
}
