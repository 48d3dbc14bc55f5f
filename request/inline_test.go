package request_test

import (
	"bytes"
	"errors"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/request"
	"github.com/agynio/k8s-runner/workload"
)

func TestInlineFiles(t *testing.T) {
	spec := parse(t, `{main: {image: a, inline_file_mounts: [{path: /etc/b}, {path: /etc/a}]}, init_containers: [{image: a, inline_file_mounts: [{path: /etc/a}]}],
		inline_files: {/etc/a: //4A, /etc/b: ""}}`)
	files := map[string][]byte{"/etc/a": {0xff, 0xfe, 0}, "/etc/b": {}}
	if diff := cmp.Diff(files, spec.InlineFiles); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"/etc/b", "/etc/a"}, spec.Main.InlineFiles); diff != "" {
		t.Errorf("of main (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"/etc/a"}, spec.Inits[0].InlineFiles); diff != "" {
		t.Errorf("of the init container (-want +got):\n%s", diff)
	}
}

func TestInlineFilesRefuses(t *testing.T) {
	const volume = `, volumes: [{name: w, kind: 1}]`
	for name, c := range map[string]struct {
		request string
		want    []string
	}{
		"unmounted": {`{main: {image: a}, inline_files: {/a: YQ==}}`, []string{"unmounted_inline_file inline_files[/a]"}},
		"undefined": {`{main: {image: a, inline_file_mounts: [{path: /a}]}}`, []string{"undefined_inline_file main.inline_file_mounts[0].path"}},
		"undefined in another": {
			`{main: {image: a, inline_file_mounts: [{path: /a}]}, sidecars: [{image: a, inline_file_mounts: [{path: /b}]}], inline_files: {/a: YQ==}}`,
			[]string{"undefined_inline_file sidecars[0].inline_file_mounts[0].path"},
		},
		"mounted by another spelling": {
			`{main: {image: a, inline_file_mounts: [{path: /x/../a}]}, inline_files: {/a: YQ==}}`,
			[]string{"undefined_inline_file main.inline_file_mounts[0].path", "unmounted_inline_file inline_files[/a]"},
		},
		"mounted by a sidecar": {`{main: {image: a}, sidecars: [{image: a, inline_file_mounts: [{path: /a}]}], inline_files: {/a: YQ==}}`, nil},
		"over a volume": {
			`{main: {image: a, mounts: [{volume: w, mount_path: /a/}], inline_file_mounts: [{path: /a}]}, inline_files: {/a: YQ==}` + volume + `}`,
			[]string{"duplicate_mount_path main.inline_file_mounts[0].path"},
		},
		"a volume below it": {
			`{main: {image: a, mounts: [{volume: w, mount_path: /a/b}], inline_file_mounts: [{path: /a}]}, inline_files: {/a: YQ==}` + volume + `}`,
			[]string{"mount_below_inline_file main.inline_file_mounts[0].path"},
		},
		"a file below it": {
			`{main: {image: a, inline_file_mounts: [{path: /a/b/c}, {path: /a}]}, inline_files: {/a: YQ==, /a/b/c: YQ==}}`,
			[]string{"mount_below_inline_file main.inline_file_mounts[1].path"},
		},
		"a file beside it": {`{main: {image: a, inline_file_mounts: [{path: /a}, {path: /ab}]}, inline_files: {/a: YQ==, /ab: YQ==}}`, nil},
		"inside a volume":  {`{main: {image: a, mounts: [{volume: w, mount_path: /a}], inline_file_mounts: [{path: /a/b}]}, inline_files: {/a/b: YQ==}` + volume + `}`, nil},
		"below a volume that is read-only": {
			`{main: {image: a, mounts: [{volume: w, mount_path: /a, read_only: true}], inline_file_mounts: [{path: /ab}, {path: /a/b/c}]}, inline_files: {/ab: YQ==, /a/b/c: YQ==}` + volume + `}`,
			[]string{"inline_file_below_read_only_mount main.inline_file_mounts[1].path"},
		},
		"read-only in another": {
			`{main: {image: a, mounts: [{volume: w, mount_path: /a}], inline_file_mounts: [{path: /a/b}]}, sidecars: [{image: a, mounts: [{volume: w, mount_path: /a, read_only: true}]}], inline_files: {/a/b: YQ==}` + volume + `}`, nil,
		},
		"a volume between": {
			`{main: {image: a, mounts: [{volume: w, mount_path: /a, read_only: true}, {volume: w, mount_path: /a/b}], inline_file_mounts: [{path: /a/b/c}]}, inline_files: {/a/b/c: YQ==}` + volume + `}`, nil,
		},
		"a volume between that is read-only": {
			`{main: {image: a, mounts: [{volume: w, mount_path: /a}, {volume: w, mount_path: /a/b, read_only: true}], inline_file_mounts: [{path: /a/b/c}]}, inline_files: {/a/b/c: YQ==}` + volume + `}`,
			[]string{"inline_file_below_read_only_mount main.inline_file_mounts[0].path"},
		},
		"a file below a file below it": {
			`{main: {image: a, inline_file_mounts: [{path: /a/b/c}, {path: /a/b}, {path: /a}]}, inline_files: {/a: YQ==, /a/b: YQ==, /a/b/c: YQ==}}`,
			[]string{"mount_below_inline_file main.inline_file_mounts[1].path", "mount_below_inline_file main.inline_file_mounts[2].path"},
		},
		"a volume of another": {`{main: {image: a, mounts: [{volume: w, mount_path: /a}]}, sidecars: [{image: a, inline_file_mounts: [{path: /a}]}], inline_files: {/a: YQ==}` + volume + `}`, nil},
		"twice": {
			`{main: {image: a, inline_file_mounts: [{path: /a}, {path: /a}]}, inline_files: {/a: YQ==}}`,
			[]string{"duplicate_mount_path main.inline_file_mounts[1].path"},
		},
	} {
		t.Run(name, func(t *testing.T) { wantFaults(t, c.request, c.want...) })
	}
}

func TestInlinePaths(t *testing.T) {
	for path, valid := range map[string]bool{
		"/a": true, "/etc/app/a.conf": true, "/..a": true, "/a b": true, "/é\n": true, "/" + strings.Repeat("a", 300): true,
		"": false, "a": false, "./a": false, "/": false, "//a": false, "/a/": false, "/a//b": false, "/a/./b": false, "/a/../b": false, "/..": false,
		"/a:b": false, "/a\x00": false,
		"/proc": false, "/proc/sys/kernel/hostname": false, "/procs": true, "/etc/proc/x": true, "/sys/x": true, "/dev/x": true,
	} {
		t.Run(path, func(t *testing.T) {
			req := inlineRequest(path, []byte("x"))
			var want []string
			if !valid {
				want = []string{"invalid_inline_path inline_files[" + path + "]"}
			}
			if diff := cmp.Diff(want, faults(t, req)); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
}

func inlineRequest(path string, content []byte) *runnerv1.StartWorkloadRequest {
	return &runnerv1.StartWorkloadRequest{
		Main:        &runnerv1.ContainerSpec{Image: "a", InlineFileMounts: []*runnerv1.InlineFileMount{{Path: path}}},
		InlineFiles: map[string][]byte{path: content},
	}
}

// TestInlineMountsInTime has as many mounts as a container may have, in deep
// folders. Sorting them for each of them is worth 8 MB.
func TestInlineMountsInTime(t *testing.T) {
	deep := "/" + strings.Repeat("a/", 200)
	c := &runnerv1.ContainerSpec{Image: "a"}
	req := &runnerv1.StartWorkloadRequest{
		Main: c, InlineFiles: map[string][]byte{}, Volumes: []*runnerv1.VolumeSpec{{Name: "v", Kind: runnerv1.VolumeKind_VOLUME_KIND_EPHEMERAL}},
	}
	for i := range 500 {
		file := deep + strconv.Itoa(i)
		req.InlineFiles[file] = nil
		c.InlineFileMounts = append(c.InlineFileMounts, &runnerv1.InlineFileMount{Path: file})
		c.Mounts = append(c.Mounts, &runnerv1.VolumeMount{Volume: "v", MountPath: file + "-dir"})
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := faults(t, req)
	runtime.ReadMemStats(&after)
	if got != nil {
		t.Errorf("the violations are %v", got)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 5<<20 {
		t.Errorf("it takes %d bytes", grown)
	}
}

// TestInlineSize has what a Secret holds, and a byte more: of all files, as
// Kubernetes counts, without their keys (C10).
func TestInlineSize(t *testing.T) {
	const most = 1 << 20
	for name, c := range map[string]struct {
		sizes   []int
		refused string
	}{
		"one file":          {[]int{most}, ""},
		"two files":         {[]int{most - 1, 1}, ""},
		"a byte more":       {[]int{most + 1}, "1048577"},
		"two and a byte":    {[]int{most, 1}, "1048577"},
		"far more":          {[]int{most, most, most}, "3145728"},
		"many empty ones":   {make([]int, 100), ""},
		"one beside nobody": {[]int{most, 0}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			req := &runnerv1.StartWorkloadRequest{Main: &runnerv1.ContainerSpec{Image: "a"}, InlineFiles: map[string][]byte{}}
			for i, size := range c.sizes {
				path := "/" + strings.Repeat("a", i+1)
				req.InlineFiles[path] = bytes.Repeat([]byte{'x'}, size)
				req.Main.InlineFileMounts = append(req.Main.InlineFileMounts, &runnerv1.InlineFileMount{Path: path})
			}
			_, err := request.Parse(req)
			var e *workload.Error
			switch {
			case c.refused == "" && err != nil:
				t.Fatal(err)
			case c.refused != "" && !errors.As(err, &e):
				t.Fatal("it is accepted")
			case c.refused != "":
				v := e.Violations[0]
				if len(e.Violations) != 1 || v.Token != "inline_files_too_large" || v.Field != "inline_files" {
					t.Errorf("the violations are %v", e.Violations)
				}
				if !strings.Contains(v.Message, c.refused) || !strings.Contains(v.Message, "1048576") {
					t.Errorf("the message has not both sizes: %s", v.Message)
				}
			}
		})
	}
}
