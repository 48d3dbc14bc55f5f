package metrics

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const (
	// requestLimit bounds the time that a client takes to say what it wants.
	requestLimit = 10 * time.Second
	// shutdownLimit bounds the wait for answers when the service ends.
	shutdownLimit = 5 * time.Second
)

// Handler serves /metrics; /livez, which is good as long as anything answers;
// and /readyz, which is good if lacks returns nothing and else tells it, a line
// a reason.
func (m *Metrics) Handler(lacks func() []string) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) {
		say(w, http.StatusOK, "ok")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if reasons := lacks(); len(reasons) > 0 {
			say(w, http.StatusServiceUnavailable, reasons...)
			return
		}
		say(w, http.StatusOK, "ok")
	})
	return mux
}

func say(w http.ResponseWriter, code int, lines ...string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, _ = fmt.Fprintln(w, strings.Join(lines, "\n")) // whoever asked is gone
}

// Serve serves handler on listener until ctx ends, then lets answers that are on
// their way arrive within a bound. It closes listener.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: requestLimit, ReadTimeout: requestLimit}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serving metrics: %w", err)
	case <-ctx.Done():
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownLimit)
	defer cancel()
	if err := server.Shutdown(bounded); err != nil {
		_ = server.Close() // it only cuts off who is late
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving metrics: %w", err)
	}
	return nil
}
