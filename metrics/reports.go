package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Reports measures what the platform is told.
type Reports struct {
	total  *prometheus.CounterVec
	enrols *prometheus.CounterVec
	up     prometheus.Gauge
	unsent *prometheus.Desc
	oldest *prometheus.Desc

	mu sync.Mutex
	// waiting tells of the states that were not told yet; nil without a platform.
	waiting func() (unsent int, oldest time.Time)
}

func newReports() *Reports {
	r := &Reports{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "state_reports_total",
			Help: "States of workloads for the platform: sent; suppressed, since they said nothing new or something newer took their place; retried after a failure; dropped.",
		}, []string{"result"}),
		enrols: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "enrolments_total",
			Help: "Enrolments with the platform, by result.",
		}, []string{"result"}),
		up: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: namespace, Name: "gateway_up",
			Help: "1 if the platform's gateway answers, 0 if it does not or there is none.",
		}),
		unsent: prometheus.NewDesc(namespace+"_state_reports_unsent", "Workloads whose newest state the platform was not told yet.", nil, nil),
		oldest: prometheus.NewDesc(namespace+"_state_reports_oldest_seconds", "How long the longest of them waits.", nil, nil),
	}
	for _, result := range []string{"sent", "suppressed", "retried", "dropped"} {
		r.total.WithLabelValues(result)
	}
	return r
}

func (r *Reports) all() []prometheus.Collector {
	return []prometheus.Collector{r.total, r.enrols, r.up, r}
}

// Reported counts a report.
func (r *Reports) Reported(result string) { r.total.WithLabelValues(result).Inc() }

// Answers: the gateway does, or it does not.
func (r *Reports) Answers(does bool) {
	r.up.Set(0)
	if does {
		r.up.Set(1)
	}
}

// Enrolled counts an enrolment.
func (r *Reports) Enrolled(err error) {
	result := resultOK
	if err != nil {
		result = resultFailed
	}
	r.enrols.WithLabelValues(result).Inc()
}

// Waiting says what tells of the states that were not told yet.
func (r *Reports) Waiting(tell func() (unsent int, oldest time.Time)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = tell
}

// Describe is prometheus.Collector's.
func (r *Reports) Describe(to chan<- *prometheus.Desc) { to <- r.unsent; to <- r.oldest }

// Collect is prometheus.Collector's: an age is that of the moment it is asked for.
func (r *Reports) Collect(to chan<- prometheus.Metric) {
	r.mu.Lock()
	waiting := r.waiting
	r.mu.Unlock()
	if waiting == nil {
		return
	}
	unsent, oldest := waiting()
	age := 0.0
	if !oldest.IsZero() {
		age = time.Since(oldest).Seconds()
	}
	to <- prometheus.MustNewConstMetric(r.unsent, prometheus.GaugeValue, float64(unsent))
	to <- prometheus.MustNewConstMetric(r.oldest, prometheus.GaugeValue, age)
}
