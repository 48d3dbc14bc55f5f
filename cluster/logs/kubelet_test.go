package logs

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (n *node) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	fails, pod := n.fails, n.pod
	n.mu.Unlock()
	switch {
	case fails != 0:
		reply(w, fails, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Code: int32(fails), Reason: reasonOf(fails)})
	case pod == nil:
		reply(w, 404, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Code: 404, Reason: metav1.StatusReasonNotFound})
	case strings.HasSuffix(r.URL.Path, "/log"):
		n.serveLog(w, r)
	default:
		n.mu.Lock()
		n.gets++
		pod := n.pod.DeepCopy()
		n.mu.Unlock()
		pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
		reply(w, 200, pod)
	}
}

func reasonOf(code int) metav1.StatusReason {
	return map[int]metav1.StatusReason{
		401: metav1.StatusReasonUnauthorized, 403: metav1.StatusReasonForbidden,
		429: metav1.StatusReasonTooManyRequests, 500: metav1.StatusReasonInternalError,
	}[code]
}

func reply(w http.ResponseWriter, code int, object any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(object)
}

type reading struct {
	follow     bool
	since      time.Time
	out        *http.ResponseController
	w          io.Writer
	insideLine bool
}

func (n *node) serveLog(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	rd := &reading{follow: query.Get("follow") == "true", out: http.NewResponseController(w), w: w}
	if text := query.Get("sinceTime"); text != "" {
		rd.since, _ = time.Parse(time.RFC3339, text)
	}
	n.mu.Lock()
	n.logs++
	f, frozen := n.files[len(n.files)-1], n.frozen
	if query.Get("previous") == "true" {
		f = n.previous
	}
	from := 0
	if tail, err := strconv.Atoi(query.Get("tailLines")); err == nil {
		from = max(0, len(f.lines)-tail)
	}
	n.mu.Unlock()
	_ = rd.out.Flush()
	n.stream(r.Context(), rd, f, from, frozen)
}

func (n *node) stream(ctx context.Context, rd *reading, f *file, from int, frozen bool) {
	for {
		n.mu.Lock()
		lines, changed, says := f.lines[from:], n.changed, n.says
		newest, skips := n.files[len(n.files)-1], n.skips
		running, mute := !n.early && n.running(), n.mute
		n.mu.Unlock()
		if mute {
			<-ctx.Done()
			return
		}
		for i, l := range lines {
			if n.dies(i) || rd.write(l) != nil {
				return
			}
		}
		from += len(lines)
		_ = rd.out.Flush()
		switch {
		case len(lines) > 0:
			continue
		case says != "" && rd.follow:
			_, _ = io.WriteString(rd.w, says)
			return
		case !rd.follow:
			return
		case newest != f && !frozen:
			if skips {
				n.stream(ctx, &reading{out: rd.out, w: rd.w}, newest, 0, false)
			}
			f, from = newest, 0
			continue
		case !running:
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

func (n *node) dies(i int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.short == 0 || n.short != i {
		return false
	}
	n.short = 0
	return true
}

func (n *node) running() bool {
	if n.pod == nil {
		return true
	}
	statuses := n.pod.Status.ContainerStatuses
	return len(statuses) > 0 && statuses[0].State.Running != nil
}

func (rd *reading) write(l fileLine) error {
	text := l.data
	if !rd.insideLine {
		text = l.at.Format("2006-01-02T15:04:05.000000000Z07:00") + " " + text
	}
	if !l.partial {
		text += "\n"
	}
	rd.insideLine = l.partial
	if l.at.Before(rd.since) {
		return nil
	}
	_, err := io.WriteString(rd.w, text)
	return err
}

// logs returns the logs of the node.
// call is a stream and what it has brought.
// follow calls Stream, with a request that a test may change.
// takes lets a slow caller take pieces, as far as there are any.
// numbered are the lines from..to.
// wantAll wants the lines 1..last, and nothing else.
// wantEnd wants the stream to end with a token, or well if that is empty.
