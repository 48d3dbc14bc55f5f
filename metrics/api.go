package metrics

import (
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// API measures the requests to the API server, and how old what it last said is.
type API struct {
	requests *prometheus.CounterVec
	took     *prometheus.HistogramVec
	age      *prometheus.Desc

	mu sync.Mutex
	// heard is when each cache last heard from the API server, if it ever did.
	heard map[string]time.Time
}

func newAPI() *API {
	return &API{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "api_requests_total",
			Help: "Requests to the API server, by verb, resource and code of the answer.",
		}, []string{"verb", "resource", "code"}),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Name: "api_request_seconds",
			Help:    "How long the API server took to answer, but for what lasts by its nature.",
			Buckets: prometheus.ExponentialBuckets(0.002, 2, 14), // 2 ms to 16 s
		}, []string{"verb"}),
		age: prometheus.NewDesc(namespace+"_cache_age_seconds",
			"How long ago the API server last said anything to a watched cache.", []string{"cache"}, nil),
		heard: map[string]time.Time{},
	}
}

func (a *API) all() []prometheus.Collector { return []prometheus.Collector{a.requests, a.took, a} }

// Asked counts a request; code is that of the answer, or why there is none.
func (a *API) Asked(verb, resource, code string) {
	a.requests.WithLabelValues(verb, resource, code).Inc()
}

// Took measures how long an answer took.
func (a *API) Took(verb string, after time.Duration) {
	a.took.WithLabelValues(verb).Observe(after.Seconds())
}

// Heard notes that the API server said something to a cache.
func (a *API) Heard(cache string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.heard[cache] = time.Now()
}

// Caches returns when each cache last heard from the API server.
func (a *API) Caches() map[string]time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.heard)
}

// Describe is prometheus.Collector's.
func (a *API) Describe(to chan<- *prometheus.Desc) { to <- a.age }

// Collect is prometheus.Collector's: an age is that of the moment it is asked for.
func (a *API) Collect(to chan<- prometheus.Metric) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for cache, at := range a.heard {
		to <- prometheus.MustNewConstMetric(a.age, prometheus.GaugeValue, time.Since(at).Seconds(), cache)
	}
}
