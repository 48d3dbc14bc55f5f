package render_test

import (
	"strings"
	"testing"
)

// TestMissing has Pods that refer to what no template makes.
func TestMissing(t *testing.T) {
	const secretObject = "---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: "
	const claimObject = "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata:\n  name: "
	for name, c := range map[string]struct {
		lines, objects string
		want           []string // the beginnings of the error's lines
	}{
		"nothing":                        {"", "", nil},
		"a claim":                        {"  volumes:\n  - name: a\n    persistentVolumeClaim:\n      claimName: claim-1\n", "", []string{"pod.yaml:12: spec.volumes[0].persistentVolumeClaim.claimName "}},
		"a claim that is made":           {"  volumes:\n  - name: a\n    persistentVolumeClaim: {claimName: claim-1}\n", claimObject + "claim-1\n", nil},
		"another one is made":            {"  volumes:\n  - name: a\n    persistentVolumeClaim: {claimName: claim-1}\n", claimObject + "more\n", []string{"pod.yaml:11: spec.volumes[0].persistentVolumeClaim.claimName "}},
		"a claim of the operator's":      {"  volumes:\n  - name: a\n    persistentVolumeClaim: {claimName: models}\n", "", nil},
		"a Secret":                       {"  volumes:\n  - name: a\n    secret:\n      secretName: {{ .InlineFiles.Secret }}\n", "", []string{"pod.yaml:12: spec.volumes[0].secret.secretName "}},
		"a Secret that is made":          {"  volumes:\n  - name: a\n    secret: {secretName: {{ .InlineFiles.Secret }}}\n", secretObject + "{{ .InlineFiles.Secret }}\n", nil},
		"a Secret of the operator's":     {"  volumes:\n  - name: a\n    secret: {secretName: shared}\n", "", nil},
		"pull Secrets":                   {"  imagePullSecrets:\n  - name: shared\n  {{- range .PullSecrets }}\n  - name: {{ .Name }}\n  {{- end }}\n", secretObject + "{{ (index .PullSecrets 0).Name }}\n", []string{"pod.yaml:12: spec.imagePullSecrets[2].name "}},
		"a policy of a Secret's name":    {"  volumes:\n  - name: a\n    secret: {secretName: {{ .Name }}-x}\n", "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: {{ .Name }}-x}\n", []string{"pod.yaml:11: spec.volumes[0].secret.secretName "}},
		"a Secret in a projected volume": {"  volumes:\n  - name: a\n    projected:\n      sources:\n      - secret: {name: {{ .Name }}-x}\n", "", []string{"pod.yaml:13: spec.volumes[0].projected.sources[0].secret.name "}},
		"a Secret of a variable":         {"    env:\n    - name: A\n      valueFrom: {secretKeyRef: {name: {{ .Name }}-x, key: a}}\n", "", []string{"pod.yaml:11: spec.containers[0].env[0].valueFrom.secretKeyRef.name "}},
		"a Secret of variables":          {"    envFrom:\n    - secretRef: {name: {{ .Name }}-x}\n", "", []string{"pod.yaml:10: spec.containers[0].envFrom[0].secretRef.name "}},
		"of an init container":           {"  initContainers:\n  - name: a\n    envFrom:\n    - secretRef: {name: {{ .Name }}-x}\n", "", []string{"pod.yaml:12: spec.initContainers[0].envFrom[0].secretRef.name "}},
		"one that may be missing":        {"    envFrom:\n    - secretRef: {name: {{ .Name }}-x, optional: true}\n  volumes:\n  - name: a\n    secret: {secretName: {{ .Name }}-x, optional: true}\n", "", nil},
		"all of them": {
			"  imagePullSecrets: [{name: {{ .Name }}}]\n  volumes:\n  - {name: a, secret: {secretName: {{ .Name }}-x}}\n  - {name: b, persistentVolumeClaim: {claimName: more}}\n", "",
			[]string{"pod.yaml:11: spec.volumes[0].secret.secretName ", "pod.yaml:12: spec.volumes[1].persistentVolumeClaim.claimName ", "pod.yaml:9: spec.imagePullSecrets[0].name "},
		},
	} {
		t.Run(name, func(t *testing.T) {
			set := compile(t, map[string]string{"pod.yaml": podWith(c.lines), "x.yaml": c.objects})
			_, err := set.Render(specOf(t, withObjects), noPlan, settings)
			if err == nil {
				if len(c.want) > 0 {
					t.Error("it renders")
				}
				return
			}
			lines := strings.Split(err.Error(), "\n")
			if len(lines) != len(c.want) {
				t.Fatalf("the error is %v", err)
			}
			for i, want := range c.want {
				if !strings.HasPrefix(lines[i], want) {
					t.Errorf("line %d does not start with %q: %s", i, want, lines[i])
				}
			}
		})
	}
}
