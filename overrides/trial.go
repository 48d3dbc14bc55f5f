package overrides

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/agynio/k8s-runner/engine"
	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/render"
	"github.com/agynio/k8s-runner/workload"
)

// What the trial of an edit costs the cluster at most.
const (
	maxTrials  = 10
	trialLimit = 20 * time.Second
)

// trial is an object that the cluster is asked about.
type trial struct {
	// request is the index of that which made it.
	request   int
	manifests *render.Manifests
	object    *unstructured.Unstructured
	// refused is what the cluster says, nil if it would take it.
	refused error
}

// put puts what e makes of requests to the cluster, and returns what it refuses.
func (p *Probe) put(ctx context.Context, trials []trial) []trial {
	var refused []trial
	for _, t := range trials {
		if t.refused = p.DryRun(ctx, t.object); t.refused != nil {
			refused = append(refused, t)
		}
	}
	return refused
}

// trials returns what e makes of requests: of each kind and name one at first, so
// that nothing is left out for the same thing of another request.
func trials(e *engine.Engine, requests []*runnerv1.StartWorkloadRequest) []trial {
	var first, more []trial
	seen := func(t trial, same func(a, b *unstructured.Unstructured) bool) bool {
		return slices.ContainsFunc(first, func(other trial) bool { return same(t.object, other.object) })
	}
	for i, req := range requests {
		_, manifests, err := e.Render(req)
		if err != nil {
			continue // lint has judged it; what the templates have as well is refused
		}
		for _, object := range manifests.All() {
			t := trial{request: i, manifests: manifests, object: object}
			switch {
			case !seen(t, alike):
				first = append(first, t)
			case !seen(t, func(a, b *unstructured.Unstructured) bool { return reflect.DeepEqual(a, b) }):
				more = append(more, t)
			}
		}
	}
	return append(first, more...)
}

// alike reports whether two objects are one and the same to the cluster.
func alike(a, b *unstructured.Unstructured) bool {
	return a.GroupVersionKind() == b.GroupVersionKind() && a.GetName() == b.GetName()
}

// requests are those that are tried: a bare one, one for whatever makes an object
// of its own, and one for each flavor. They are of one id, so that what does not
// depend on the request is the same in all.
func (p *Probe) requests() []*runnerv1.StartWorkloadRequest {
	id := uuid.NewString()
	bare := func() *runnerv1.StartWorkloadRequest {
		return &runnerv1.StartWorkloadRequest{WorkloadId: id, Main: &runnerv1.ContainerSpec{Image: "busybox"}}
	}
	const file, volume = "/etc/k8s-runner-trial", "trial"
	rich := bare()
	rich.InlineFiles = map[string][]byte{file: []byte("x")}
	rich.Main.InlineFileMounts = []*runnerv1.InlineFileMount{{Path: file}}
	rich.ImagePullCredentials = []*runnerv1.ImagePullCredential{{Registry: "registry.example.com", Username: "trial", Password: "x"}}
	rich.Volumes = []*runnerv1.VolumeSpec{{Name: volume, Kind: runnerv1.VolumeKind_VOLUME_KIND_NAMED, PersistentName: volume + "-" + id}}
	rich.Main.Mounts = []*runnerv1.VolumeMount{{Volume: volume, MountPath: "/" + volume}}
	all := []*runnerv1.StartWorkloadRequest{bare(), rich}
	for _, f := range p.Suite.Catalog.Flavors {
		req := bare()
		req.Flavor = f.Name
		all = append(all, req)
	}
	return all
}

// try puts what e makes to the cluster. Its error has a line for each fault that
// the cluster finds and would not find in what the runner ships: that is not about
// the layers.
func (p *Probe) try(ctx context.Context, e *engine.Engine) error {
	ctx, cancel := context.WithTimeout(ctx, trialLimit)
	defer cancel()
	asked := p.requests()
	all := trials(e, asked)
	refused := p.put(ctx, all[:min(len(all), maxTrials)])
	if len(refused) == 0 {
		return nil
	}
	shipped, err := engine.New(engine.Options(p.Suite))
	if err != nil {
		return err
	}
	var lines []string
	for _, t := range refused {
		if len(p.put(ctx, sameOf(shipped, asked[t.request], t.object))) == 0 {
			lines = append(lines, t.lines()...)
		}
	}
	return joined(lines)
}

// sameOf returns what e makes of req that is of the kind of object.
func sameOf(e *engine.Engine, req *runnerv1.StartWorkloadRequest, object *unstructured.Unstructured) []trial {
	return slices.DeleteFunc(trials(e, []*runnerv1.StartWorkloadRequest{req}), func(t trial) bool {
		return t.object.GroupVersionKind() != object.GroupVersionKind()
	})
}

// lines tell what was refused, each with its place in the layers: that of the field,
// or where a shipped file set it, of the last that had a part in the object.
func (t *trial) lines() []string {
	told := func(fault string, path ...any) string {
		where := t.manifests.Where(t.object, path...)
		if !strings.Contains(where, "/") { // as the names of layers' files are written
			where = t.manifests.Where(t.object)
		}
		return fmt.Sprintf("%s: the cluster would refuse the %s: %s", where, t.object.GetKind(), fault)
	}
	known := (*workload.Error)(nil)
	if !errors.As(t.refused, &known) || len(known.Violations) == 0 {
		return []string{told(t.refused.Error())}
	}
	var lines []string
	for _, v := range known.Violations {
		lines = append(lines, told(v.Field+" "+v.Message, steps(v.Field)...))
	}
	return lines
}

// joined is an error of lines, each once and not too many of them.
func joined(lines []string) error {
	var once []string
	for _, line := range lines {
		if line = strings.Join(strings.Fields(line), " "); !slices.Contains(once, line) {
			once = append(once, line)
		}
	}
	if more := len(once) - maxFindings; more > 0 {
		once = append(once[:maxFindings], fmt.Sprintf("and %d more", more))
	}
	if len(once) == 0 {
		return nil
	}
	return errors.New(strings.Join(once, "\n"))
}

// steps takes apart a path as the API server writes it, such as
// spec.containers[0].env or metadata.labels[a.b/c].
func steps(path string) []any {
	var out []any
	for rest := path; rest != ""; {
		end := strings.IndexAny(rest, ".[")
		switch {
		case end < 0:
			return append(out, rest)
		case end > 0:
			out = append(out, rest[:end])
		}
		if rest[end] == '.' {
			rest = rest[end+1:]
			continue
		}
		key, after, _ := strings.Cut(rest[end+1:], "]")
		if i, err := strconv.Atoi(key); err == nil {
			out = append(out, i)
		} else {
			out = append(out, key)
		}
		rest = after
	}
	return out
}
