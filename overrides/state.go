package overrides

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/agynio/k8s-runner/engine"
	"github.com/agynio/k8s-runner/workload"
)

// State is what a Store serves.
type State struct {
	// Engine is nil if no layers were good since the start.
	Engine *engine.Engine
	// Layers are those of Engine, in the order of their names; LoadedAt is when it
	// was made.
	Layers   []Layer
	LoadedAt time.Time
	// Rejection is the last edit that was refused, if it is still there.
	Rejection *Rejection
}

// Layer is one ConfigMap of a State.
type Layer struct {
	Name, Kind, ResourceVersion string
	// Digest identifies the content: the first 16 hexadecimal digits of a SHA-256.
	Digest string
}

// Rejection is an edit that does not count.
type Rejection struct {
	// Findings are single lines, which start with layer/file:line where they are
	// about one.
	Findings []string
	At       time.Time
	// ConfigMaps are the names of those that it is about.
	ConfigMaps []string
	// tried are all the layers that were refused together.
	tried []Layer
}

// maxFinding bounds what is kept of a finding, in bytes: a template can put all
// that it has into its error.
const maxFinding = 2 << 10

// findingsOf returns those in the text of err. A line that is indented goes on
// with the one before.
func findingsOf(err error) []string {
	var findings []string
	for line := range strings.Lines(err.Error()) {
		text := strings.TrimSpace(line)
		switch last := len(findings) - 1; {
		case text == "":
		case last >= 0 && text[0] != line[0]:
			findings[last] += " " + text
		default:
			findings = append(findings, text)
		}
	}
	for i, f := range findings {
		if len(f) > maxFinding {
			f = f[:maxFinding] + "…"
		}
		findings[i] = strings.ToValidUTF8(f, "")
	}
	return findings
}

// findings are those of the rejection, if there is one.
func (s *State) findings() []string {
	if s.Rejection == nil {
		return nil
	}
	return s.Rejection.Findings
}

// knows reports whether s is what became of just these ConfigMaps, good or bad.
func (s *State) knows(all []*corev1.ConfigMap) bool {
	switch {
	case s.Rejection != nil:
		return slices.Equal(s.Rejection.tried, described(all))
	case s.Engine != nil:
		return slices.Equal(s.Layers, described(all))
	}
	return false
}

// serves reports whether s serves m as it is now.
func (s *State) serves(m *corev1.ConfigMap) bool {
	return slices.ContainsFunc(s.Layers, func(l Layer) bool {
		return l.Name == m.Name && l.ResourceVersion == m.ResourceVersion
	})
}

// concerned returns those of all that findings name or, where they name none,
// as in a shipped template that a value broke, those that s does not serve.
func (s *State) concerned(all []*corev1.ConfigMap, findings []string) []*corev1.ConfigMap {
	named := slices.DeleteFunc(slices.Clone(all), func(m *corev1.ConfigMap) bool { return len(linesAbout(findings, m.Name)) == 0 })
	if len(named) > 0 {
		return named
	}
	return slices.DeleteFunc(slices.Clone(all), s.serves)
}

// linesAbout are the findings in the ConfigMap called name.
func linesAbout(findings []string, name string) []string {
	var about []string
	for _, line := range findings {
		if strings.HasPrefix(line, name+"/") || strings.HasPrefix(line, name+":") {
			about = append(about, line)
		}
	}
	return about
}

func names(all []*corev1.ConfigMap) []string {
	out := make([]string, len(all))
	for i, m := range all {
		out[i] = m.Name
	}
	return out
}

func described(all []*corev1.ConfigMap) []Layer {
	out := make([]Layer, len(all))
	for i, m := range all {
		out[i] = Layer{Name: m.Name, Kind: m.Labels[workload.LabelTemplates], ResourceVersion: m.ResourceVersion, Digest: digest(m.Data)}
	}
	return out
}

// digest identifies texts by their names.
func digest(texts map[string]string) string {
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		_, _ = fmt.Fprintf(sum, "%s %d\n%s", name, len(texts[name]), texts[name]) // a hash takes everything
	}
	return hex.EncodeToString(sum.Sum(nil))[:16]
}
