package request_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/request"
)

// TestRefuses has a request for each rule, with every violation that it has.
func TestRefuses(t *testing.T) {
	volumes := "\nvolumes: [{name: w, kind: VOLUME_KIND_EPHEMERAL}]"
	for name, c := range map[string]struct {
		request string
		want    []string
	}{
		"nothing":                    {`{}`, []string{"main_container_required main", "main_container_image_required main.image"}},
		"no image":                   {`main: {}`, []string{"main_container_image_required main.image"}},
		"no image of others":         {`{main: {image: a}, sidecars: [{}], init_containers: [{}]}`, []string{"container_image_required sidecars[0].image", "container_image_required init_containers[0].image"}},
		"entrypoint with a space":    {`main: {image: a, entrypoint: "/bin/sh -c"}`, []string{"invalid_entrypoint main.entrypoint"}},
		"entrypoint with a newline":  {`main: {image: a, entrypoint: "/bin/sh\n"}`, []string{"invalid_entrypoint main.entrypoint"}},
		"entrypoint with a hard one": {`main: {image: a, entrypoint: "/bin/\u00a0sh"}`, []string{"invalid_entrypoint main.entrypoint"}},
		"relative working dir":       {`main: {image: a, working_dir: w}`, []string{"invalid_working_dir main.working_dir"}},
		"NUL everywhere": {
			`main: {image: a, cmd: [x, "\0"], entrypoint: "/a\0", working_dir: "/\0", env: [{name: A, value: "\0"}]}`,
			[]string{"invalid_string main.cmd[1]", "invalid_string main.entrypoint", "invalid_string main.working_dir", "invalid_string main.env[0].value"},
		},
		"env names": {
			`main: {image: a, env: [{name: ""}, {name: 1A}, {name: A B}, {name: A=B}, {name: "A\0"}, {name: é}]}`,
			[]string{
				"invalid_env_name main.env[0].name", "invalid_env_name main.env[1].name", "invalid_env_name main.env[2].name",
				"invalid_env_name main.env[3].name", "invalid_env_name main.env[4].name", "invalid_env_name main.env[5].name",
			},
		},
		"underscore (C04)":   {`{main: {image: a}, sidecars: [{image: a, name: my_sidecar}]}`, []string{"invalid_container_name sidecars[0].name"}},
		"upper case name":    {`main: {image: a, name: Main}`, []string{"invalid_container_name main.name"}},
		"64 characters":      {`main: {image: a, name: ` + strings.Repeat("a", 64) + `}`, []string{"invalid_container_name main.name"}},
		"same name":          {`{main: {image: a}, init_containers: [{image: a, name: main}]}`, []string{"duplicate_container_name init_containers[0].name"}},
		"a default is taken": {`{main: {image: a, name: init-1}, init_containers: [{image: a}]}`, []string{"duplicate_container_name init_containers[0].name"}},
		"all three at once": {
			`{main: {image: a, name: x}, sidecars: [{image: a, name: x}], init_containers: [{image: a, name: x}]}`,
			[]string{"duplicate_container_name sidecars[0].name", "duplicate_container_name init_containers[0].name"},
		},
		"restart policy": {
			`{main: {image: a}, init_containers: [{image: a, additional_properties: {restart_policy: OnFailure}}]}`,
			[]string{"invalid_restart_policy init_containers[0].additional_properties[restart_policy]"},
		},
		"read-only root": {
			`main: {image: a, additional_properties: {read_only_root_filesystem: "True"}}`,
			[]string{"invalid_read_only_root_filesystem main.additional_properties[read_only_root_filesystem]"},
		},
		"id in upper case": {`{main: {image: a}, workload_id: 00000000-0000-4000-8000-00000000000A}`, []string{"invalid_workload_id workload_id"}},
		"id with a newline": {
			`{main: {image: a}, workload_id: "00000000-0000-4000-8000-00000000000a\n"}`, []string{"invalid_workload_id workload_id"},
		},
		"prefix alone": {`{main: {image: a}, workload_id: workload-}`, []string{"invalid_workload_id workload_id"}},
		"prefix twice": {
			`{main: {image: a}, workload_id: workload-workload-00000000-0000-4000-8000-00000000000a}`, []string{"invalid_workload_id workload_id"},
		},
		"the same path twice (C07)": {
			`main: {image: a, mounts: [{volume: w, mount_path: /w}, {volume: w, mount_path: /w/}, {volume: w, mount_path: /x/../w}, {volume: w, mount_path: //w}]}` + volumes,
			[]string{
				"duplicate_mount_path main.mounts[1].mount_path", "duplicate_mount_path main.mounts[2].mount_path", "duplicate_mount_path main.mounts[3].mount_path",
			},
		},
		"paths that are none": {
			`main: {image: a, mounts: [{volume: w}, {volume: w, mount_path: w}, {volume: w, mount_path: /}, {volume: w, mount_path: /..}, {volume: w, mount_path: "/a:b"}, {volume: w, mount_path: "/a\0"}]}` + volumes,
			[]string{
				"invalid_mount_path main.mounts[0].mount_path", "invalid_mount_path main.mounts[1].mount_path", "invalid_mount_path main.mounts[2].mount_path",
				"invalid_mount_path main.mounts[3].mount_path", "invalid_mount_path main.mounts[4].mount_path", "invalid_mount_path main.mounts[5].mount_path",
			},
		},
		"in /proc": {
			`main: {image: a, mounts: [{volume: w, mount_path: /proc}, {volume: w, mount_path: //proc/x/}, {volume: w, mount_path: /x/../proc/sys}]}` + volumes,
			[]string{"invalid_mount_path main.mounts[0].mount_path", "invalid_mount_path main.mounts[1].mount_path", "invalid_mount_path main.mounts[2].mount_path"},
		},
		"undeclared volume": {`main: {image: a, mounts: [{volume: x, mount_path: /x}]}` + volumes, []string{"undeclared_volume main.mounts[0].volume"}},
		"volume without a kind": {
			`{main: {image: a}, volumes: [{name: w}, {name: x, kind: 7}]}`, []string{"volume_kind_required volumes[0].kind", "volume_kind_required volumes[1].kind"},
		},
		"volume names": {
			`{main: {image: a}, volumes: [{kind: 1}, {name: a_b, kind: 1}, {name: w, kind: 1}, {name: w, kind: 2}]}`,
			[]string{"invalid_volume_name volumes[0].name", "invalid_volume_name volumes[1].name", "duplicate_volume_name volumes[3].name"},
		},
		"claim name": {`{main: {image: a}, volumes: [{name: w, kind: 2, persistent_name: A}]}`, []string{"invalid_claim_name volumes[0].persistent_name"}},
		"a bad volume name is one fault": {
			`{main: {image: a}, volumes: [{name: A, kind: 2}]}`, []string{"invalid_volume_name volumes[0].name"},
		},
		"sizes": {
			`{main: {image: a}, volumes: [{name: a, kind: 1, size: lots}, {name: b, kind: 1, size: "0"}, {name: c, kind: 2, size: "-1Gi"}, {name: d, kind: 2, size: 10GB}]}`,
			[]string{"invalid_size volumes[0].size", "invalid_size volumes[1].size", "invalid_size volumes[2].size", "invalid_size volumes[3].size"},
		},
		"four name servers":  {`{main: {image: a}, dns_config: {nameservers: [10.0.0.1, 10.0.0.2, 10.0.0.3, "::1"]}}`, []string{"too_many_nameservers dns_config.nameservers"}},
		"name server":        {`{main: {image: a}, dns_config: {nameservers: [dns, "", "fe80::1%eth0"]}}`, []string{"invalid_nameserver dns_config.nameservers[0]", "invalid_nameserver dns_config.nameservers[1]", "invalid_nameserver dns_config.nameservers[2]"}},
		"search":             {`{main: {image: a}, dns_config: {searches: ["a b", "", "..", -a]}}`, []string{"invalid_search dns_config.searches[0]", "invalid_search dns_config.searches[1]", "invalid_search dns_config.searches[2]", "invalid_search dns_config.searches[3]"}},
		"all kinds together": {`{workload_id: x, main: {name: A}, volumes: [{name: w}]}`, []string{"invalid_workload_id workload_id", "main_container_image_required main.image", "invalid_container_name main.name", "volume_kind_required volumes[0].kind"}},
	} {
		t.Run(name, func(t *testing.T) { wantFaults(t, c.request, c.want...) })
	}
}

func TestDNSLimits(t *testing.T) {
	for name, c := range map[string]struct {
		searches []string
		refused  bool
	}{
		"32 are taken":              {repeated("a", 32), false},
		"33 are not":                {repeated("a", 33), true},
		"2048 characters are taken": {append(repeated(strings.Repeat("a", 63), 31), strings.Repeat("a", 63), "a")[1:], false},
		"2049 are not":              {append(repeated(strings.Repeat("a", 63)+".b", 31), strings.Repeat("a", 3)), true},
		"the root":                  {[]string{"."}, false},
		"a final dot":               {[]string{"example.com."}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := faults(t, &runnerv1.StartWorkloadRequest{
				Main: &runnerv1.ContainerSpec{Image: "a"}, DnsConfig: &runnerv1.DnsConfig{Searches: c.searches},
			})
			var want []string
			if c.refused {
				want = []string{"too_many_searches dns_config.searches"}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%d searches, %d characters (-want +got):\n%s", len(c.searches), len(strings.Join(c.searches, " ")), diff)
			}
		})
	}
}

func repeated(s string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = s
	}
	return out
}

// TestSizeIsReadInTime has quantities for which resource.ParseQuantity alone
// takes minutes.
func TestSizeIsReadInTime(t *testing.T) {
	for _, size := range []string{"1e-99999999", "1E-99999999", "1e999999999", "1" + strings.Repeat("0", 4<<20), "0." + strings.Repeat("0", 4<<20) + "1"} {
		got := faults(t, &runnerv1.StartWorkloadRequest{
			Main:    &runnerv1.ContainerSpec{Image: "a"},
			Volumes: []*runnerv1.VolumeSpec{{Name: "w", Kind: runnerv1.VolumeKind_VOLUME_KIND_EPHEMERAL, Size: size}},
		})
		if diff := cmp.Diff([]string{"invalid_size volumes[0].size"}, got); diff != "" {
			t.Errorf("size %.20s (-want +got):\n%s", size, diff)
		}
	}
}

// TestAccepts has what looks odd and is right.
func TestAccepts(t *testing.T) {
	for name, request := range map[string]string{
		"names of 63":         `main: {image: a, name: ` + strings.Repeat("a", 63) + `}`,
		"env names":           `main: {image: a, env: [{name: A.b-c_d, value: x}, {name: _, value: ""}]}`,
		"odd strings":         `main: {image: a, cmd: ["", " ", "$(X)", "$$", "a\nb", "\ue000"], env: [{name: A, value: "é\x01"}]}`,
		"odd paths":           `{main: {image: a, working_dir: "/a b\n", mounts: [{volume: w, mount_path: "/a b"}]}, volumes: [{name: w, kind: 1}]}`,
		"a path in a path":    `{main: {image: a, mounts: [{volume: w, mount_path: /w}, {volume: w, mount_path: /w/x}]}, volumes: [{name: w, kind: 1}]}`,
		"paths of the system": `{main: {image: a, mounts: [{volume: w, mount_path: /sys/x}, {volume: w, mount_path: /dev/shm}, {volume: w, mount_path: /process}, {volume: w, mount_path: /a/proc}]}, volumes: [{name: w, kind: 1}]}`,
		"a path in each":      `{main: {image: a, mounts: [{volume: w, mount_path: /w}]}, sidecars: [{image: a, mounts: [{volume: w, mount_path: /w}]}], volumes: [{name: w, kind: 1}]}`,
		"one claim twice":     `{main: {image: a}, volumes: [{name: w, kind: 2, persistent_name: c}, {name: x, kind: 2, persistent_name: c}]}`,
		"claim with dots":     `{main: {image: a}, volumes: [{name: w, kind: 2, persistent_name: a.b-c}]}`,
		"sizes":               `{main: {image: a}, volumes: [{name: a, kind: 1, size: 1Gi}, {name: b, kind: 1, size: "1e9"}, {name: c, kind: 2, size: 1.5Gi}, {name: d, kind: 2, size: 1E}, {name: e, kind: 2, size: 1Ei}]}`,
		"three name servers":  `{main: {image: a}, dns_config: {nameservers: [10.0.0.1, "2001:db8::1", "::1"]}}`,
		"main restart policy": `main: {image: a, additional_properties: {restart_policy: Never}}`,
		"a command":           `main: {image: a, entrypoint: relative}`,
	} {
		t.Run(name, func(t *testing.T) { wantFaults(t, request) })
	}
}

// TestLongStrings has the longest strings that Linux takes, and a byte more:
// MAX_ARG_STRLEN and PATH_MAX count the NUL byte that ends one.
func TestLongStrings(t *testing.T) {
	const arg, path = 131071, 4095
	text := func(n int) string { return strings.Repeat("s", n) }
	slashed := func(n int) string { return "/" + text(n-1) }
	for name, c := range map[string]struct {
		most int
		give func(req *start, n int)
		want string
	}{
		"an argument":       {arg, func(req *start, n int) { req.Main.Cmd = []string{"a", text(n)} }, "main.cmd[1]"},
		"a variable":        {arg - len("AB="), func(req *start, n int) { req.Main.Env = []*runnerv1.EnvVar{{Name: "AB", Value: text(n)}} }, "main.env[0].value"},
		"a variable's name": {arg - len("=v"), func(req *start, n int) { req.Main.Env = []*runnerv1.EnvVar{{Name: text(n), Value: "v"}} }, "main.env[0].value"},
		"an entrypoint":     {path, func(req *start, n int) { req.Main.Entrypoint = text(n) }, "main.entrypoint"},
		"a directory":       {path, func(req *start, n int) { req.Main.WorkingDir = slashed(n) }, "main.working_dir"},
		"a mount": {path, func(req *start, n int) {
			req.Volumes = []*runnerv1.VolumeSpec{{Name: "v", Kind: runnerv1.VolumeKind_VOLUME_KIND_EPHEMERAL}}
			req.Main.Mounts = []*runnerv1.VolumeMount{{Volume: "v", MountPath: slashed(n)}}
		}, "main.mounts[0].mount_path"},
	} {
		t.Run(name, func(t *testing.T) {
			for n, want := range map[int][]string{c.most: nil, c.most + 1: {"string_too_long " + c.want}} {
				req := &start{Main: &runnerv1.ContainerSpec{Image: "a"}}
				c.give(req, n)
				if diff := cmp.Diff(want, faults(t, req)); diff != "" {
					t.Errorf("of %d bytes, the violations (-want +got):\n%s", n, diff)
				}
				if _, err := request.Parse(req); err != nil && strings.Contains(err.Error(), "sss") {
					t.Errorf("the error repeats it: %.200v", err)
				}
			}
		})
	}
	t.Run("an inline file", func(t *testing.T) {
		for n, want := range map[int][]string{path: nil, path + 1: {"string_too_long inline_files[" + slashed(path+1) + "]"}} {
			if diff := cmp.Diff(want, faults(t, inlineRequest(slashed(n), nil))); diff != "" {
				t.Errorf("of %d bytes, the violations (-want +got):\n%s", n, diff)
			}
		}
	})
}

func TestErrorsRepeatNoSecret(t *testing.T) {
	const secret = "s3cr3t-value"
	for name, text := range map[string]string{
		"env value":            `main: {image: a, env: [{name: A, value: "s3cr3t-value\0"}]}`,
		"argument":             `main: {image: a, cmd: ["s3cr3t-value\0"]}`,
		"entrypoint":           `main: {image: a, entrypoint: "s3cr3t-value x"}`,
		"password":             `{image_pull_credentials: [{password: s3cr3t-value}]}`,
		"inline file":          `{inline_files: {relative: czNjcjN0LXZhbHVl}}`,
		"duplicate env":        `main: {env: [{name: A, value: s3cr3t-value}, {name: A, value: s3cr3t-value}]}`,
		"user of an image":     `main: {image: "bob:s3cr3t-value@reg/app:1"}`,
		"user and a digest":    `main: {image: "bob:s3cr3t-value@reg/app@sha256:0"}`,
		"user like a digest":   `main: {image: "bob@sha256:s3cr3t-value@reg/app"}`,
		"user of a bad digest": `main: {image: "s3cr3t-value@md5:0"}`,
		"bad name of it":       `main: {image: a, env: [{name: "", value: s3cr3t-value}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			err := parseError(t, text)
			if strings.Contains(err.Error(), secret) {
				t.Errorf("the error repeats the secret: %v", err)
			}
		})
	}
}
