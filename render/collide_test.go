package render_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agynio/k8s-runner/catalog"
	"github.com/agynio/k8s-runner/workload"
)

// TestCollisionsOfCapabilities has names of a request that only some requests
// may not use: those of the inline files and of docker.
func TestCollisionsOfCapabilities(t *testing.T) {
	const volume = "{main: {image: a, inline_file_mounts: [{path: /a}]}, inline_files: {/a: YQ==}, volumes: [{name: v, kind: 1}, {name: inline-files, kind: 1}]}"
	const names = "{main: {image: a, name: docker-daemon, env: [{name: A, value: b}, {name: DOCKER_HOST, value: c}]}, volumes: [{name: docker-data, kind: 1}, {name: docker-tun, kind: 2}]}"
	rootless, privileged := &catalog.Plan{Docker: catalog.DockerRootless}, &catalog.Plan{Docker: catalog.DockerPrivileged}
	for name, c := range map[string]struct {
		request string
		plan    *catalog.Plan
		want    []string
	}{
		"inline files":          {volume, noPlan, []string{"duplicate_volume_name volumes[1].name"}},
		"without inline files":  {"{main: {image: a}, volumes: [{name: inline-files, kind: 1}]}", noPlan, nil},
		"without docker":        {names, noPlan, nil},
		"docker, rootless":      {names, rootless, []string{"duplicate_volume_name volumes[0].name", "duplicate_volume_name volumes[1].name", "duplicate_container_name main.name", "duplicate_env_name main.env"}},
		"docker, privileged":    {names, privileged, []string{"duplicate_volume_name volumes[0].name", "duplicate_container_name main.name", "duplicate_env_name main.env"}},
		"a sidecar's variable":  {"{main: {image: a}, sidecars: [{image: a, env: [{name: DOCKER_HOST, value: b}]}]}", rootless, nil},
		"an init container":     {"{main: {image: a}, init_containers: [{image: a, name: docker-daemon}]}", rootless, []string{"duplicate_container_name init_containers[0].name"}},
		"a native sidecar's":    {"{main: {image: a}, init_containers: [{image: a}, {image: a, name: docker-daemon, additional_properties: {restart_policy: Always}}]}", rootless, []string{"duplicate_container_name init_containers[1].name"}},
		"a volume of some name": {"{main: {image: a, mounts: [{volume: docker, mount_path: /var/lib/docker}]}, volumes: [{name: docker, kind: 1}]}", privileged, nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := shipped(t).Render(specOf(t, c.request), c.plan, settings)
			var got []string
			var refused *workload.Error
			switch {
			case errors.As(err, &refused):
				for _, v := range refused.Violations {
					got = append(got, v.Token+" "+v.Field)
				}
			case err != nil:
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
}

// TestCollisionOfAnInlineFile: a template mounts what the request has as a file.
func TestCollisionOfAnInlineFile(t *testing.T) {
	set := compile(t, map[string]string{"pod.yaml": strings.Replace(podWith(""), "busybox\n", `busybox
    volumeMounts:
    - {name: mine, mountPath: /etc/a}
    {{- toYaml (index .Containers 0).Mounts | nindent 4 }}
`, 1)})
	_, err := set.Render(specOf(t, withObjects), noPlan, settings)
	var refused *workload.Error
	if !errors.As(err, &refused) || refused.Kind != workload.InvalidArgument || len(refused.Violations) != 1 {
		t.Fatalf("the error is %v", err)
	}
	v := refused.Violations[0]
	if v.Field != "main.inline_file_mounts[0].path" || v.Token != "duplicate_mount_path" {
		t.Errorf("the violation is %+v", v)
	}
	if !strings.Contains(v.Message, "(pod.yaml:10 and pod.yaml:11)") {
		t.Errorf("the message does not name both places: %s", v.Message)
	}
}
