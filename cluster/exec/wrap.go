package exec

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/agynio/k8s-runner/workload"
)

// markVariable is the variable in the environment of a process that tells which
// command it, and whatever it starts, belongs to.
const markVariable = "K8S_RUNNER_EXEC"

const shell = "/bin/sh"

// wrapScript runs a command: $1 is a token, $2 the directory, $3 and $4 the
// terminal's rows and columns, empty without one, $5 the command's mark, and then
// comes the command, or env, variables and the command. It says, in notices, that the
// command begins, or why it cannot, and with which code it ended.
//
// The code is told twice, in a notice and as the script's own. containerd reports no
// status before all input is taken (internal/cri/io/exec_io.go), so the script takes
// what the command left; and none before all output is closed, so the notice is
// what counts if a child of the command keeps it open. What the shell itself says of
// a command that a signal ended goes nowhere.
const wrapScript = `k8s_runner_token=$1
say() { printf '\036%s %s\n' "$k8s_runner_token" "$1"; }
command -v env >/dev/null && command -v cat >/dev/null || { say noenv; exit 126; }
[ -z "$2" ] || cd -- "$2" 2>/dev/null || { say nodir; exit 126; }
[ -z "$3" ] || stty rows "$3" cols "$4" 2>/dev/null
k8s_runner_rows=$3
say begins
export ` + markVariable + `="$5"
shift 5
trap : INT QUIT
exec 7>&2 2>/dev/null
(exec "$@" 2>&ERRORS 7>&-)
set -- "$?"
say "$1"
[ "$k8s_runner_rows" ] || ! read -r k8s_runner_rows || cat >/dev/null
exit "$1"`

// wrapped is the command under its wrapper. What is not kept apart is made one
// where the process writes it, so that the order is its own. The wrapper keeps the
// old standard error open: containerd ends the input when one output ends.
func wrapped(id, token string, c *workload.Command, size *workload.Size) []string {
	errorsTo, rows, columns := "7", "", ""
	if !c.TTY && !c.Separate {
		errorsTo = "1"
	}
	if size != nil {
		rows, columns = strconv.Itoa(int(size.Rows)), strconv.Itoa(int(size.Columns))
	}
	script := strings.Replace(wrapScript, "ERRORS", errorsTo, 1)
	argv := []string{shell, "-c", script, "sh", token, c.Dir, rows, columns, id}
	return append(append(argv, throughEnv(id, c)...), c.Argv...)
}

// throughEnv is what comes before a command for which a shell's exec is not enough.
// Where it is, env would cost as much as all the rest of the wrapper.
func throughEnv(id string, c *workload.Command) []string {
	program := c.Argv[0]
	if len(c.Env) == 0 && !strings.HasPrefix(program, "-") { // exec would take it for an option
		return nil
	}
	argv := []string{"env", markVariable + "=" + id} // the first variable ends env's own options
	for _, v := range c.Env {
		argv = append(argv, v.Name+"="+v.Value)
	}
	if strings.Contains(program, "=") { // env would take it for a variable
		argv = append(argv, shell, "-c", `exec "$0" "$@"`)
	}
	return argv
}

// Notices of the wrapper beside the exit code.
const (
	noticeBegins = "begins"
	noticeNoEnv  = "noenv"
	noticeNoDir  = "nodir"
)

// notices finds the wrapper's notices in the output.
type notices struct {
	// prefix begins a notice; no process knows it.
	prefix []byte
	// held is what may be the beginning of one.
	held []byte
}

func newNotices(token string) *notices { return &notices{prefix: []byte("\x1e" + token + " ")} }

// maxNotice bounds a notice after its prefix, in bytes.
const maxNotice = 16

// next takes a piece of the output. It returns what comes before the first notice,
// the notice, and what is left to be looked at. Without a notice all is before it,
// but for what may be the beginning of one, which is kept for the next piece.
func (n *notices) next(data []byte) (before []byte, notice string, after []byte) {
	if len(n.held) > 0 {
		data = append(n.held, data...)
		n.held = nil
	}
	for from := 0; ; {
		i := bytes.IndexByte(data[from:], n.prefix[0])
		if i < 0 {
			return data, "", nil
		}
		i += from
		rest := data[i:]
		if len(rest) < len(n.prefix) {
			if bytes.HasPrefix(n.prefix, rest) {
				n.held = bytes.Clone(rest)
				return data[:i], "", nil
			}
		} else if bytes.HasPrefix(rest, n.prefix) {
			text := rest[len(n.prefix):]
			if end := bytes.IndexByte(text, '\n'); end >= 0 && end <= maxNotice {
				return data[:i], strings.TrimSuffix(string(text[:end]), "\r"), text[end+1:] // a terminal's \r
			} else if end < 0 && len(text) <= maxNotice {
				n.held = bytes.Clone(rest)
				return data[:i], "", nil
			}
		}
		from = i + 1
	}
}

// rest is what was kept and begins no notice, for the end of the output.
func (n *notices) rest() []byte {
	held := n.held
	n.held = nil
	return held
}
