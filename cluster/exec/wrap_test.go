package exec

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agynio/k8s-runner/workload"
)

// TestNotices: a notice is found wherever the pieces break, and nothing else is
// taken for one.
func TestNotices(t *testing.T) {
	const token = "t0ken"
	for name, c := range map[string]struct {
		output string
		want   []string
		rest   string
	}{
		"none":              {"a\nb", nil, "a\nb"},
		"one":               {"a\x1et0ken 42\nb", []string{"42"}, "ab"},
		"two":               {"\x1et0ken begins\nout\x1et0ken 0\n", []string{"begins", "0"}, "out"},
		"of a terminal":     {"\x1et0ken begins\r\nout", []string{"begins"}, "out"},
		"another's":         {"\x1eother 42\nb", nil, "\x1eother 42\nb"},
		"half of one":       {"a\x1et0k", nil, "a\x1et0k"},
		"no end":            {"a\x1et0ken 42", nil, "a\x1et0ken 42"},
		"no end for long":   {"\x1et0ken " + strings.Repeat("x", 100), nil, "\x1et0ken " + strings.Repeat("x", 100)},
		"twice the first":   {"\x1e\x1et0ken 1\n", []string{"1"}, "\x1e"},
		"only its first":    {"a\x1e", nil, "a\x1e"},
		"binary before one": {"\x00\xff\x1e\x00\x1et0ken 9\n\x1e", []string{"9"}, "\x00\xff\x1e\x00\x1e"},
	} {
		t.Run(name, func(t *testing.T) {
			for size := 1; size <= len(c.output); size++ {
				var found []string
				var rest []byte
				n := newNotices(token)
				for i := 0; i < len(c.output); i += size {
					for data := []byte(c.output[i:min(i+size, len(c.output))]); len(data) > 0; {
						before, notice, after := n.next(data)
						rest = append(rest, before...)
						if notice != "" {
							found = append(found, notice)
						}
						data = after
					}
				}
				rest = append(rest, n.rest()...)
				if diff := cmp.Diff(c.want, found); diff != "" || string(rest) != c.rest {
					t.Fatalf("in pieces of %d it has %q and notices (-want +got)\n%s", size, rest, diff)
				}
			}
		})
	}
}

func FuzzNotices(f *testing.F) {
	f.Add([]byte("a\x1et0ken 1\nb"), uint8(3))
	f.Add([]byte("\x1e\x1et0ken \x1e\n"), uint8(1))
	f.Fuzz(func(t *testing.T, output []byte, size uint8) {
		whole := strings.Join(pieces(output, len(output)+1), "|")
		if got := strings.Join(pieces(output, int(size)+1), "|"); got != whole {
			t.Errorf("in pieces of %d it is %q, and whole %q", size, got, whole)
		}
	})
}

// pieces passes output through notices, size bytes at a time: what is no notice, and
// the notices.
func pieces(output []byte, size int) []string {
	n, parts := newNotices("t0ken"), []string{""}
	for len(output) > 0 {
		data := output[:min(size, len(output))]
		output = output[len(data):]
		for len(data) > 0 {
			before, notice, after := n.next(bytes.Clone(data))
			parts[0] += string(before)
			if notice != "" {
				parts = append(parts, notice)
			}
			data = after
		}
	}
	parts[0] += string(n.rest())
	return parts
}

func TestTail(t *testing.T) {
	for size := 1; size < 40; size++ {
		tail := tail{limit: 10}
		var all []byte
		for i := range 30 {
			piece := bytes.Repeat([]byte{byte('a' + i%26)}, size)
			all = append(all, piece...)
			tail.add(piece)
			if want := all[max(0, len(all)-10):]; !bytes.Equal(tail.bytes(), want) {
				t.Fatalf("after %d pieces of %d the tail is %q, not %q", i+1, size, tail.bytes(), want)
			}
		}
		if cap(tail.data) > 64 {
			t.Errorf("it has %d bytes", cap(tail.data))
		}
	}
}

// TestWrapper runs the wrapper with the shell of this machine.
func TestWrapper(t *testing.T) {
	if _, err := os.Stat(shell); err != nil {
		t.Skipf("this machine has no %s", shell)
	}
	for name, c := range map[string]struct {
		command workload.Command
		stdin   string
		output  string
		// notices are those that it gives.
		notices string
	}{
		"output and code":   {workload.Command{Argv: []string{"sh", "-c", "echo a; echo b >&2; exit 3"}}, "", "a\nb\n", "begins 3"},
		"arguments":         {workload.Command{Argv: []string{"printf", "%s|", "a b", "$(x)", "-n", ""}}, "", "a b|$(x)|-n||", "begins 0"},
		"environment":       {workload.Command{Argv: []string{"sh", "-c", `echo "$A$B"`}, Env: []workload.EnvVar{{Name: "A", Value: "x\ny"}, {Name: "B", Value: "="}}}, "", "x\ny=\n", "begins 0"},
		"mark":              {workload.Command{Argv: []string{"sh", "-c", `echo "$K8S_RUNNER_EXEC"`}}, "", "id\n", "begins 0"},
		"directory":         {workload.Command{Argv: []string{"pwd"}, Dir: "/usr"}, "", "/usr\n", "begins 0"},
		"no directory":      {workload.Command{Argv: []string{"pwd"}, Dir: "/nope"}, "", "", "nodir"},
		"not there":         {workload.Command{Argv: []string{"sh", "-c", "no-such-command 2>/dev/null"}}, "", "", "begins 127"},
		"killed":            {workload.Command{Argv: []string{"sh", "-c", "kill -9 $$"}}, "", "", "begins 137"},
		"name with =":       {workload.Command{Argv: []string{"/no=such"}, Separate: true}, "", "", "begins 127"},
		"input":             {workload.Command{Argv: []string{"cat"}}, "in\n", "in\n", "begins 0"},
		"input that is not": {workload.Command{Argv: []string{"true"}}, strings.Repeat("unread\n", 100_000), "", "begins 0"},
	} {
		t.Run(name, func(t *testing.T) {
			argv := wrapped("id", "t0ken", &c.command, nil)
			process := exec.Command(argv[0], argv[1:]...)
			process.Stdin = strings.NewReader(c.stdin)
			all, _ := process.Output() // its code is among the notices
			got := pieces(all, len(all)+1)
			if notices := strings.Join(got[1:], " "); got[0] != c.output || notices != c.notices {
				t.Errorf("it prints %q, and gives the notices %q", got[0], notices)
			}
			if code := strconv.Itoa(process.ProcessState.ExitCode()); code != got[len(got)-1] && got[len(got)-1] != noticeNoDir {
				t.Errorf("it ends with %s", code)
			}
		})
	}
}
