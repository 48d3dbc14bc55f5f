package reporter

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/agynio/k8s-runner/catalog"
	"github.com/agynio/k8s-runner/e2e/gateway"
	runnersv1 "github.com/agynio/k8s-runner/proto/agynio/api/runners/v1"
	"github.com/agynio/k8s-runner/workload"
)

// enrolling is a client of a gateway that may not be there, and its log.
func enrolling(t *testing.T, address, token string) (*Gateway, *logrus.Logger, *syncBuffer) {
	t.Helper()
	client, err := Dial(address, token, insecure.NewCredentials())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	lines := &syncBuffer{}
	log := logrus.New()
	log.SetOutput(lines)
	return client, log, lines
}

func TestEnrol(t *testing.T) {
	for name, c := range map[string]struct {
		conduct gateway.Conduct
		token   string
		// says is a part of the error; empty means that there is none.
		says string
	}{
		"well":      {gateway.Conduct{}, token, ""},
		"slow":      {gateway.Conduct{Delay: 100 * time.Millisecond}, token, ""},
		"bad token": {gateway.Conduct{}, "an0ther-token", "SERVICE_TOKEN"},
		"old":       {gateway.Conduct{Old: true}, token, ErrNoEnrolment.Error()},
		"too slow":  {gateway.Conduct{Delay: time.Minute}, token, "no answer for"},
	} {
		t.Run(name, func(t *testing.T) {
			g := gateway.New(token)
			address, err := g.Start(t.Context(), "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer g.Stop()
			g.Behave(c.conduct)
			client, log, lines := enrolling(t, address, c.token)
			limit := time.Minute
			if c.conduct.Delay >= limit {
				limit = time.Second
			}
			got, err := client.Enrol(t.Context(), limit, log)
			if (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("it returns %v, %v", got, err)
			}
			if err == nil && (got.RunnerID() != "one" || got.IdentityID != "identity" || len(got.Identity) == 0) {
				t.Errorf("it returns %+v", got)
			}
			if text := lines.String() + errorText(err); strings.Contains(text, c.token) {
				t.Errorf("it tells the token: %s", text)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestEnrolLate: a gateway that comes later is found, and an end is one.
func TestEnrolLate(t *testing.T) {
	g := gateway.New(token)
	address, err := g.Start(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g.Stop()
	client, log, lines := enrolling(t, address, token)
	ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, errors.New("enough"))
	defer cancel()
	if _, err := client.Enrol(ctx, time.Minute, log); err == nil || err.Error() != "enough" {
		t.Errorf("it returns %v", err)
	}
	enrolled := make(chan error, 1)
	go func() {
		_, err := client.Enrol(t.Context(), time.Minute, log)
		enrolled <- err
	}()
	eventually(t, 5*time.Second, func() string {
		if strings.Count(lines.String(), "no answer yet") != 2 {
			return lines.String()
		}
		return ""
	})
	if _, err := g.Start(t.Context(), address); err != nil {
		t.Fatal(err)
	}
	defer g.Stop()
	if err := <-enrolled; err != nil {
		t.Error(err)
	}
}

func TestReportCatalog(t *testing.T) {
	g := gateway.New(token)
	address, err := g.Start(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer g.Stop()
	client, log, lines := enrolling(t, address, token)
	client.Identify("one")
	offered := &catalog.Catalog{
		Flavors: []catalog.Flavor{
			{Name: "small", Default: true, Resources: workload.Resources{RequestsCPU: "1", RequestsMemory: "2Gi", LimitsCPU: "3", LimitsMemory: "4Gi"}},
			{Name: "old", Deprecated: true},
		},
		StorageClasses: []catalog.StorageClass{{Name: "fast", ClassName: "nvme", Default: true}, {Name: "slow", Deprecated: true}},
	}
	if err := client.ReportCatalog(t.Context(), offered, []string{"docker"}, time.Minute, log); err != nil {
		t.Fatal(err)
	}
	want := []*runnersv1.ReportRunnerCatalogRequest{{
		RunnerId: "one", ServiceToken: token, Capabilities: []string{"docker"},
		Flavors: []*runnersv1.FlavorEntry{
			{Name: "small", Default: true, Resources: &runnersv1.ComputeResources{RequestsCpu: "1", RequestsMemory: "2Gi", LimitsCpu: "3", LimitsMemory: "4Gi"}},
			{Name: "old", Deprecated: true, Resources: &runnersv1.ComputeResources{}},
		},
		StorageClasses: []*runnersv1.StorageClassEntry{{Name: "fast", Default: true}, {Name: "slow", Deprecated: true}},
	}}
	if diff := cmp.Diff(want, g.Catalogs(), protocmp.Transform()); diff != "" {
		t.Errorf("it is told (-want +got):\n%s", diff)
	}
	g.Behave(gateway.Conduct{Old: true})
	if err := client.ReportCatalog(t.Context(), offered, nil, time.Minute, log); err != nil || strings.Count(lines.String(), "\n") != 1 {
		t.Errorf("an old one is told with %v:\n%s", err, lines)
	}
}

func TestRunnerID(t *testing.T) {
	for service, want := range map[string]string{"runner-7": "7", "runner-": "", "seven": "", "": ""} {
		if got := (&Enrolment{Service: service}).RunnerID(); got != want {
			t.Errorf("of %q it is %q", service, got)
		}
	}
}
