//go:build e2e

package e2e

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"
)

// fault is what happens to a request on its way to the API server or back.
type fault string

const (
	passed     fault = ""
	unsent     fault = "connection broken before the server acted"
	lost       fault = "answer lost after the server acted"
	delayed    fault = "answered late"
	conflicts  fault = "answered 409"
	throttled  fault = "answered 429"
	fails      fault = "answered 500"
	overloaded fault = "answered 503"
)

// maxFaults bounds the faults of one request and its repetitions, so that each
// call comes to its end.
const maxFaults = 3

// plan says which faults a runner meets. It is a function of its seed and of what
// is asked, not of the order in which requests of one call happen to go out.
type plan struct {
	seed uint64
	// rate is the share of requests that meet a fault.
	rate float64
	// kills holds the numbers of the writes, from 1, after whose answer the runner
	// is killed; the answer is passed on where the value is true.
	kills map[int]bool
	// cuts holds the numbers of the requests, from 1, at which all watches break;
	// where the value is true, their versions have expired as well.
	cuts map[int]bool
}

// newPlan draws a plan.
func newPlan(seed uint64) plan {
	random := rand.New(rand.NewPCG(seed, 1))
	p := plan{seed: seed, rate: random.Float64() * 0.3, kills: map[int]bool{}, cuts: map[int]bool{}}
	for random.IntN(4) == 0 && len(p.kills) < 3 {
		p.kills[1+random.IntN(20)] = random.IntN(2) == 0
	}
	if random.IntN(10) == 0 {
		p.cuts[1+random.IntN(20)] = random.IntN(2) == 0
	}
	return p
}

// of is the fault of the n-th request, from 1, that is c, and how long it takes.
func (p plan) of(c apiCall, n int) (fault, time.Duration) {
	hash := fnv.New64a()
	fmt.Fprint(hash, c, n)
	random := rand.New(rand.NewPCG(p.seed, hash.Sum64()))
	if n > maxFaults || random.Float64() >= p.rate {
		return passed, 0
	}
	possible := []fault{unsent, lost, lost, delayed, throttled, fails, overloaded}
	if c.writes() {
		possible = append(possible, conflicts)
	}
	return possible[random.IntN(len(possible))], time.Duration(random.IntN(150)) * time.Millisecond
}

// apiCall is a request about one object.
type apiCall struct{ verb, resource, name string }

func (c apiCall) String() string { return c.verb + " " + c.resource + " " + c.name }
func (c apiCall) writes() bool   { return c.verb != http.MethodGet }

// apiCallOf reads a request. Those about lists, and those that change nothing, are
// none.
func apiCallOf(r *http.Request, nameOf func() string) (c apiCall, ok bool) {
	_, path, _ := strings.Cut(r.URL.Path, "/namespaces/")
	parts := strings.Split(path, "/")
	if len(parts) < 2 || len(parts) > 3 || r.URL.Query().Has("dryRun") {
		return c, false
	}
	c = apiCall{verb: r.Method, resource: parts[1]}
	switch c.resource {
	case "pods", "secrets", "networkpolicies", "persistentvolumeclaims":
	default:
		return c, false
	}
	switch {
	case len(parts) == 3:
		c.name = parts[2]
	case r.Method == http.MethodPost:
		c.name = nameOf()
	default:
		return c, false
	}
	return c, true
}
