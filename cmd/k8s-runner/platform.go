package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/agynio/k8s-runner/catalog"
	"github.com/agynio/k8s-runner/cluster"
	"github.com/agynio/k8s-runner/config"
	"github.com/agynio/k8s-runner/metrics"
	"github.com/agynio/k8s-runner/overlay"
	k8srunnerv1 "github.com/agynio/k8s-runner/proto/k8srunner/v1"
	"github.com/agynio/k8s-runner/reporter"
)

// platform is what makes the runner part of one.
type platform struct {
	config  config.Config
	gateway *reporter.Gateway
	reports *reporter.Reports
	offered *catalog.Catalog
	// capabilities are those that work.
	capabilities []string
	meter        *metrics.Reports
	log          *logrus.Logger

	mu                    sync.Mutex
	runnerID, serviceName string
	enrolled, catalogued  time.Time
}

// newPlatform returns nil for a runner without one.
func newPlatform(c config.Config, offered *catalog.Catalog, capabilities []string, pods *cluster.Pods, meter *metrics.Reports, log *logrus.Logger) (*platform, error) {
	if !c.InPlatform() {
		return nil, nil //nolint:nilnil // a runner without a platform is as good
	}
	transport, err := gatewayCredentials(c.Gateway, log)
	if err != nil {
		return nil, err
	}
	gateway, err := reporter.Dial(c.Gateway.Address, c.Gateway.ServiceToken, transport)
	if err != nil {
		return nil, err
	}
	p := &platform{
		config: c, gateway: gateway, reports: reporter.NewReports(gateway, meter, log),
		offered: offered, capabilities: capabilities, meter: meter, log: log,
	}
	meter.Waiting(func() (int, time.Time) {
		s := p.reports.Status()
		return s.Unsent, s.Oldest
	})
	if err := pods.Observe(p.reports.Observe); err != nil {
		return nil, err
	}
	return p, nil
}

// join enrols the runner and reports the catalog. It returns the enrolment, which is
// empty with a platform that is too old to have any.
func (p *platform) join(ctx context.Context) (*reporter.Enrolment, error) {
	enrolment, err := p.enrolment(ctx)
	if err != nil {
		return nil, err
	}
	id := cmp.Or(p.config.Gateway.RunnerID, enrolment.RunnerID())
	if id == "" {
		p.log.Warn("the enrolment does not say which runner this is; set gateway.runner_id (environment K8SRUNNER_RUNNER_ID) if the platform needs it")
	}
	p.gateway.Identify(id)
	p.mu.Lock()
	p.runnerID, p.serviceName, p.enrolled = id, enrolment.Service, time.Now()
	p.mu.Unlock()
	p.log.WithFields(logrus.Fields{"runner_id": id, "gateway": p.config.Gateway.Address}).Info("enrolled with the platform")
	if err := p.reportCatalog(ctx); err != nil {
		return nil, err
	}
	return enrolment, nil
}

// enrolment returns the one that is kept, or enrols the runner, if the platform can.
func (p *platform) enrolment(ctx context.Context) (*reporter.Enrolment, error) {
	if !p.config.Ziti.Enabled {
		enrolment, err := p.enrol(ctx)
		if errors.Is(err, reporter.ErrNoEnrolment) {
			p.log.Warn("this platform enrols no runners; going on without")
			return &reporter.Enrolment{}, nil
		}
		return enrolment, err
	}
	file := overlay.File(p.config.Ziti.IdentityFile)
	kept, ok, err := file.Load()
	if err != nil {
		return nil, fmt.Errorf("ziti.identity_file (environment K8SRUNNER_ZITI_IDENTITY_FILE): %w", err)
	}
	if ok {
		p.log.WithField("service", kept.ServiceName).Info("using the identity of an earlier enrolment")
		return &reporter.Enrolment{Identity: kept.Identity, Service: kept.ServiceName, IdentityID: kept.IdentityID}, nil
	}
	enrolment, err := p.enrol(ctx)
	if errors.Is(err, reporter.ErrNoEnrolment) {
		return nil, fmt.Errorf("%w, and without an identity there is no overlay (ziti.enabled, environment ZITI_ENABLED)", err)
	}
	if err != nil {
		return nil, err
	}
	err = file.Keep(overlay.Enrolment{ServiceName: enrolment.Service, IdentityID: enrolment.IdentityID, Identity: enrolment.Identity})
	if err != nil {
		return nil, fmt.Errorf("ziti.identity_file (environment K8SRUNNER_ZITI_IDENTITY_FILE): %w", err)
	}
	return enrolment, nil
}

// enrol enrols the runner, and counts that.
func (p *platform) enrol(ctx context.Context) (*reporter.Enrolment, error) {
	enrolment, err := p.gateway.Enrol(ctx, p.config.Ziti.EnrollmentTimeout, p.log)
	if !errors.Is(err, reporter.ErrNoEnrolment) {
		p.meter.Enrolled(err)
	}
	return enrolment, err
}

func (p *platform) reportCatalog(ctx context.Context) error {
	if err := p.gateway.ReportCatalog(ctx, p.offered, p.capabilities, p.config.Ziti.EnrollmentTimeout, p.log); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.catalogued = time.Now()
	return nil
}

// flushLimit bounds the wait, at the end, for a gateway to take what is not told yet.
const flushLimit = 5 * time.Second

// report tells the platform the states of workloads, until the function that it returns
// is called: that waits a moment for what the platform does not know yet, since of what
// is gone the next runner knows nothing.
func (p *platform) report(ctx context.Context) (end func()) {
	reporting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.reports.Run(reporting, p.reportCatalog)
	}()
	return func() {
		bounded, stop := context.WithTimeout(reporting, flushLimit)
		defer stop()
		p.reports.Flush(bounded)
		cancel()
		<-ended
	}
}

// service is the name of the runner on the overlay.
func (p *platform) service() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.serviceName
}

func (p *platform) close() {
	if err := p.gateway.Close(); err != nil {
		p.log.WithError(err).Warn("the connection to the gateway stays")
	}
}

// status tells of it.
func (p *platform) status(status *k8srunnerv1.GetStatusResponse) {
	s := p.reports.Status()
	p.mu.Lock()
	defer p.mu.Unlock()
	status.Gateway = &k8srunnerv1.GatewayStatus{
		Address: p.config.Gateway.Address, RunnerId: p.runnerID, EnrolledAt: moment(p.enrolled), CatalogReportedAt: moment(p.catalogued),
		AwaySince: moment(s.Away), Away: s.Why,
		Unsent: uint32(s.Unsent), OldestUnsentAt: moment(s.Oldest), //nolint:gosec // it is a count
	}
}

// moment is nil for a time that has not come.
func moment(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}
