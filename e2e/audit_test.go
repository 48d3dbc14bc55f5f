//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
)

// auditEvent holds the parts of audit.k8s.io/v1 Event that are counted.
type auditEvent struct {
	Stage     string                    `json:"stage"`
	Verb      string                    `json:"verb"`
	User      struct{ Username string } `json:"user"`
	ObjectRef struct{ Resource string } `json:"objectRef"`
	Response  struct{ Code int }        `json:"responseStatus"`
}

// countRequests counts the finished requests of user by "verb resource".
func countRequests(log []byte, user string) (map[string]int, error) {
	counts := map[string]int{}
	for line := range bytes.Lines(log) {
		if !bytes.Contains(line, []byte(user)) || !bytes.HasSuffix(line, []byte("\n")) {
			continue
		}
		var e auditEvent
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, err
		}
		// A watch is logged when it starts and again when it ends.
		if e.User.Username == user && e.Stage != "ResponseStarted" {
			counts[e.Verb+" "+e.ObjectRef.Resource]++
		}
	}
	return counts, nil
}
