//go:build e2e

package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/google/uuid"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
)

// known is what a caller knows of an object.
type known string

const (
	gone    known = "gone"
	there   known = "there"
	unknown known = "unknown" // whoever asked gave up
)

// foreignClaim is one that the runner did not make.
const foreignClaim = "foreign"

// shape is what a workload has beside its Pod.
type shape struct {
	// secrets gives it a credential and an inline file.
	secrets bool
	// own gives it a claim that no other has, shared the one of the run, and foreign
	// one that refuses it.
	own, shared, foreign bool
}

// subject is one workload id of a run.
type subject struct {
	id    string
	shape shape
	state known
	// uid is that of the Pod that is there.
	uid string
	// request is the last that may have made the Pod.
	request *runnerv1.StartWorkloadRequest
}

// claimState is what is known of a claim, and its UID if it has been seen.
type claimState struct {
	state known
	uid   string
}

// model is what a caller knows of all that a run has made.
type model struct {
	run      string
	policies bool
	subjects []*subject
	claims   map[string]*claimState
}

// newModel draws the workloads of a run.
func newModel(seed uint64) (*model, *rand.Rand) {
	source := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16), byte(seed >> 24)})
	random := rand.New(source)
	m := &model{run: fmt.Sprintf("run-%d", seed), policies: hasPolicies(seed), claims: map[string]*claimState{}}
	for range 2 + random.IntN(3) {
		id := uuid.Must(uuid.NewRandomFromReader(source)).String()
		s := &subject{id: id, state: gone}
		switch random.IntN(6) {
		case 0:
		case 1, 2:
			s.shape = shape{shared: true}
		case 3, 4:
			s.shape = shape{secrets: true, own: true, shared: random.IntN(2) == 0}
		case 5:
			s.shape = shape{secrets: true, shared: true, foreign: true}
		}
		m.subjects = append(m.subjects, s)
		for _, name := range m.claimsOf(s) {
			m.claims[name] = &claimState{state: gone}
		}
	}
	return m, random
}

// hasPolicies tells whether the runner of a run makes NetworkPolicies.
func hasPolicies(seed uint64) bool { return seed%2 == 1 }

// claimsOf lists the claims that s mounts and that the runner makes.
func (m *model) claimsOf(s *subject) (names []string) {
	if s.shape.own {
		names = append(names, "own-"+s.id)
	}
	if s.shape.shared {
		names = append(names, "shared-"+m.run)
	}
	return names
}

// claimNames lists the claims of the run.
func (m *model) claimNames() []string { return slices.Sorted(maps.Keys(m.claims)) }

// newRequest returns a request for s, with this content.
func (m *model) newRequest(s *subject, content string) *runnerv1.StartWorkloadRequest {
	main := shell("sleep 1000")
	main.Env = []*runnerv1.EnvVar{{Name: "CONTENT", Value: content}}
	req := &runnerv1.StartWorkloadRequest{WorkloadId: s.id, Main: main, Labels: map[string]string{runLabel: m.run}}
	if s.shape.secrets {
		req.ImagePullCredentials = []*runnerv1.ImagePullCredential{{Registry: "registry.example.com", Username: "u", Password: content}}
		req.InlineFiles = map[string][]byte{inlinePath: []byte(content)}
		main.InlineFileMounts = []*runnerv1.InlineFileMount{{Path: inlinePath}}
	}
	mount := func(volume, claim string) {
		req.Volumes = append(req.Volumes, &runnerv1.VolumeSpec{Name: volume, PersistentName: claim, Kind: runnerv1.VolumeKind_VOLUME_KIND_NAMED, Size: "1Mi"})
		main.Mounts = append(main.Mounts, &runnerv1.VolumeMount{Volume: volume, MountPath: "/" + volume})
	}
	for i, claim := range m.claimsOf(s) {
		mount(fmt.Sprintf("v%d", i), claim)
	}
	if s.shape.foreign {
		mount("foreign", foreignClaim)
	}
	return req
}

const (
	// runLabel is on all that a run makes.
	runLabel   = "e2e.test/run"
	inlinePath = "/etc/inline"
)

// step draws the calls that are made at the same time. A call that removes claims
// is made alone: what others would find then nobody can say.
func (m *model) step(random *rand.Rand, number int) []*op {
	if names := m.claimNames(); len(names) > 0 && random.IntN(10) == 0 {
		return []*op{m.drawn(random, &op{does: toRemoveVolume, claim: names[random.IntN(len(names))]})}
	}
	var ops []*op
	for _, i := range random.Perm(len(m.subjects))[:1+random.IntN(2)] {
		s := m.subjects[i]
		o := m.drawn(random, &op{subject: s, does: m.next(random, s)})
		switch o.does {
		case toStart, toStartOther:
			o.request = m.newRequest(s, fmt.Sprintf("content-%d", number))
		case toStartAgain:
			o.request = s.request
		case toRemoveAll:
			return []*op{o}
		}
		ops = append(ops, o)
		if o.does == toStart && random.IntN(3) == 0 { // another asks for the same, and one of the two leaves early
			twin := *o
			twin.hasty, twin.givesUp = !o.hasty, false
			ops = append(ops, &twin)
		}
	}
	return ops
}

// drawn gives o the caller's ways.
func (m *model) drawn(random *rand.Rand, o *op) *op {
	o.force = random.IntN(2) == 0
	o.hasty = random.IntN(6) == 0
	o.givesUp = random.IntN(8) == 0
	return o
}

// next draws what is done with s.
func (m *model) next(random *rand.Rand, s *subject) what {
	pick := func(from ...what) what { return from[random.IntN(len(from))] }
	switch s.state {
	case there:
		return pick(toStartAgain, toStartOther, toStop, toRemove, toRemoveAll, toRemoveAll)
	case unknown:
		return pick(toStartAgain, toStartAgain, toStop, toRemove, toRemoveAll)
	}
	return pick(toStart, toStart, toStart, toStart, toStart, toStop, toRemove)
}
