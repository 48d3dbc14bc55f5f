package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"google.golang.org/protobuf/testing/protocmp"

	runnerv1 "github.com/agynio/k8s-runner/proto/agynio/api/runner/v1"
	"github.com/agynio/k8s-runner/request"
)

// parse makes a request of a command line as run does.
func parse(t *testing.T, stdin string, args ...string) (*runnerv1.StartWorkloadRequest, error) {
	t.Helper()
	var f runFlags
	flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
	f.add(flags)
	flags.SetInterspersed(false)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	req, err := readRequest(f.file, strings.NewReader(stdin))
	if err != nil {
		return nil, err
	}
	return req, f.apply(req, flags)
}

func TestRunFlags(t *testing.T) {
	t.Setenv("FROM_HERE", "a=b")
	envFile := filepath.Join(t.TempDir(), "env")
	writeFile(t, envFile, "# a comment\nA=1\r\n\n  B= x # y\nFROM_HERE\nNOT_SET_HERE\n")
	const file = `
workload_id: 00000000-0000-4000-8000-000000000001
main:
  image: busybox
  cmd: [sleep, "60"]
  env: [{name: A, value: file}]
volumes: [{name: data, kind: VOLUME_KIND_NAMED}]
labels: {a: file}
dns_config: {nameservers: [192.0.2.1], searches: [a.example]}`

	tests := []struct {
		name string
		args []string
		want string // a request in YAML
	}{
		{"image", []string{"busybox"}, `main: {image: busybox}`},
		{"command", []string{"busybox", "sh", "-c", "echo hi"}, `main: {image: busybox, cmd: [sh, -c, echo hi]}`},
		{"dash", []string{"busybox", "--", "ls", "-l"}, `main: {image: busybox, cmd: [ls, -l]}`},
		{"second dash is a word", []string{"busybox", "--", "--", "x"}, `main: {image: busybox, cmd: [--, x]}`},
		{"dash before the image", []string{"--", "busybox", "ls"}, `main: {image: busybox, cmd: [ls]}`},
		{"flags after the image are words", []string{"busybox", "-e", "A=1", "-f", "x"}, `main: {image: busybox, cmd: [-e, A=1, -f, x]}`},
		{"env", []string{"-e", "A=1", "--env", "B=x=y, z", "-e", "C=", "-e", "FROM_HERE", "-e", "NOT_SET_HERE", "busybox"}, `
main:
  image: busybox
  env: [{name: A, value: "1"}, {name: B, value: "x=y, z"}, {name: C, value: ""}, {name: FROM_HERE, value: a=b}]`},
		{"env file", []string{"-e", "A=2", "--env-file", envFile, "busybox"}, `
main:
  image: busybox
  env: [{name: A, value: "1"}, {name: B, value: " x # y"}, {name: FROM_HERE, value: a=b}, {name: A, value: "2"}]`},
		{"volumes", []string{"-v", "work:/work", "-v", "work:/srv:ro", "-v", "/a", "--volume", "/b", "-v", "c:/c:rw", "busybox"}, `
main:
  image: busybox
  mounts:
    - {volume: work, mount_path: /work}
    - {volume: work, mount_path: /srv, read_only: true}
    - {volume: volume-1, mount_path: /a}
    - {volume: volume-2, mount_path: /b}
    - {volume: c, mount_path: /c}
volumes:
  - {name: work, kind: VOLUME_KIND_EPHEMERAL}
  - {name: volume-1, kind: VOLUME_KIND_EPHEMERAL}
  - {name: volume-2, kind: VOLUME_KIND_EPHEMERAL}
  - {name: c, kind: VOLUME_KIND_EPHEMERAL}`},
		{"the rest", []string{
			"--id", "x", "--label", "a=1", "-l", "b", "--entrypoint", "/bin/sh", "-w", "/w", "--read-only",
			"--dns", "192.0.2.7", "--dns", "192.0.2.8", "--dns-search", "b.example", "busybox",
		}, `
workload_id: x
main:
  image: busybox
  entrypoint: /bin/sh
  working_dir: /w
  additional_properties: {read_only_root_filesystem: "true"}
labels: {a: "1", b: ""}
dns_config: {nameservers: [192.0.2.7, 192.0.2.8], searches: [b.example]}`},
		{"file", []string{"-f", "-"}, file},
		{"file changed", []string{
			"-f", "-", "-e", "A=1", "-l", "a=1", "-l", "b=2", "-v", "data:/data", "--dns", "192.0.2.9", "--id", "x", "--read-only=false", "other:1", "ls",
		}, `
workload_id: x
main:
  image: other:1
  cmd: [ls]
  env: [{name: A, value: file}, {name: A, value: "1"}]
  mounts: [{volume: data, mount_path: /data}]
  additional_properties: {read_only_root_filesystem: "false"}
volumes: [{name: data, kind: VOLUME_KIND_NAMED}]
labels: {a: "1", b: "2"}
dns_config: {nameservers: [192.0.2.9], searches: [a.example]}`},
		{"file, only another image", []string{"-f", "-", "--label", "a=file", "other"}, strings.Replace(file, "busybox", "other", 1)},
		{"file, only another command", []string{"-f", "-", "--", "ls"}, strings.Replace(file, `[sleep, "60"]`, "[ls]", 1)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			want, err := request.Unmarshal([]byte(test.want))
			if err != nil {
				t.Fatal(err)
			}
			got, err := parse(t, file, test.args...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
				t.Errorf("the request differs (-want +got)\n%s", diff)
			}
		})
	}
}

// TestRunFlagsErrors checks what cannot be parsed, and that no error repeats a
// value.
func TestRunFlagsErrors(t *testing.T) {
	envFile := filepath.Join(t.TempDir(), "env")
	writeFile(t, envFile, "A=1\n=sesame\n")
	tests := []struct {
		name  string
		stdin string
		args  []string
	}{
		{"nothing", "", nil},
		{"variable without a name", "", []string{"-e", "=sesame", "busybox"}},
		{"variable of a file without a name", "", []string{"--env-file", envFile, "busybox"}},
		{"no such file of variables", "", []string{"--env-file", envFile + "x", "busybox"}},
		{"label without a key", "", []string{"-l", "=x", "busybox"}},
		{"folder of the machine", "", []string{"-v", "/etc:/etc", "busybox"}},
		{"folder beside", "", []string{"-v", "./src:/src", "busybox"}},
		{"unknown option of a volume", "", []string{"-v", "a:/a:z", "busybox"}},
		{"too many parts of a volume", "", []string{"-v", "a:/a:ro:z", "busybox"}},
		{"text for a list", "main: {env: sesame}", []string{"-f", "-"}},
		{"text for a mapping", "main: {env: [PASSWORD=sesame]}", []string{"-f", "-"}},
		{"bytes that are none", "inline_files: {/a: 'sesame!'}", []string{"-f", "-"}},
		{"not YAML", "main: {env: [{name: A, value: sesame}", []string{"-f", "-"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := parse(t, test.stdin, test.args...)
			if err == nil {
				t.Fatal("there is no error")
			}
			if strings.Contains(err.Error(), "sesame") {
				t.Errorf("the error tells a value: %v", err)
			}
		})
	}
}

// TestExamples checks that the example requests are ones.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no examples: %v", err)
	}
	for _, file := range files {
		req, err := readRequest(file, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := request.Parse(req); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
