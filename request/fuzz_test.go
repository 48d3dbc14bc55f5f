package request_test

import (
	"errors"
	"testing"

	k8srunner "github.com/agynio/k8s-runner"
	"github.com/agynio/k8s-runner/catalog"
	"github.com/agynio/k8s-runner/config"
	"github.com/agynio/k8s-runner/engine"
	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/request/requesttest"
	"github.com/agynio/k8s-runner/templates"
	"github.com/agynio/k8s-runner/workload"
)

// FuzzParse puts arbitrary strings into all string fields. A request is refused
// with violations that say where and what, or it renders.
func FuzzParse(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x01"))
	f.Add([]byte("\x00\x01\x04a:b\n\x02\x02$$\x03\x01/"))
	f.Add([]byte("\x02\x01\x00\x01\x01\x00\x01\x12\"\n  hostNetwork: 1\x02\x0c\xee\x80\x80000\xee\x80\x81"))
	files, err := templates.Shipped()
	if err != nil {
		f.Fatal(err)
	}
	c, faults := catalog.Parse(k8srunner.Catalog)
	if len(faults) > 0 {
		f.Fatal(faults)
	}
	settings := config.Default()
	settings.Kube.Namespace = "workloads"
	settings.Capabilities.Implementations = map[string]string{catalog.Docker: catalog.DockerRootless}
	e, err := engine.New(engine.Options{Templates: files, Catalog: c, Config: settings})
	if err != nil {
		f.Fatal(err)
	}
	rich := requesttest.Rich(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, _, err := e.Render(fuzzed(rich, data)); err != nil {
			checkRefusal(t, err)
		}
	})
}

// fuzzed returns rich with parts left out and strings replaced.
func fuzzed(rich *runnerv1.StartWorkloadRequest, data []byte) *runnerv1.StartWorkloadRequest {
	in := requesttest.Bytes(data)
	req := cloned(rich)
	parts := in.Byte()
	if parts&1 != 0 {
		req.Main = nil
	}
	if parts&2 != 0 {
		req.Volumes = nil
	}
	if parts&4 != 0 {
		req.Sidecars = append(req.Sidecars, cloned(req.GetSidecars()[0]), &runnerv1.ContainerSpec{})
	}
	if parts&8 != 0 {
		req.InitContainers, req.DnsConfig = nil, nil
	}
	requesttest.ReplaceStrings(req, func(_, old string) string {
		switch in.Byte() % 4 {
		case 1:
			return in.String()
		case 2:
			return old + in.String()
		case 3:
			return in.String() + old
		}
		return old
	})
	return req
}

func checkRefusal(t *testing.T, err error) {
	t.Helper()
	var e *workload.Error
	if !errors.As(err, &e) || e.Kind != workload.InvalidArgument || len(e.Violations) == 0 {
		t.Fatalf("the refusal has no violations: %v", err)
	}
	for _, v := range e.Violations {
		if v.Field == "" || v.Token == "" || v.Message == "" {
			t.Errorf("a violation says too little: %+v", v)
		}
	}
}
