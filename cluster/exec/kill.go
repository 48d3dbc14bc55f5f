package exec

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/agynio/k8s-runner/workload"
)

// killLimit bounds a kill.
const killLimit = 1300 * time.Millisecond

// killScript kills every process whose environment has the mark $1, and whatever
// those started, until a look finds none; then it writes "gone". A process that it
// may not look at and that is younger than the command, which began $2 seconds ago,
// may be one of them: it writes "unsure" then.
const killScript = `mark=$1
read -r up _ </proc/uptime
since=$(( (${up%%.*} - $2) * 100 ))
look() {
  ours=' ' unsure= first=1 grew=1
  while [ "$grew" ]; do
    grew=
    for d in /proc/[0-9]*; do
      p=${d#/proc/} state= parent=
      case $ours in *" $p "*) continue ;; esac
      while read -r key value _; do
        case $key in State:) state=$value ;; PPid:) parent=$value; break ;; esac
      done 2>/dev/null <"$d/status"
      case $state in ''|Z|X) continue ;; esac
      case $ours in *" $parent "*) ours="$ours$p " grew=1; continue ;; esac
      [ "$first" ] || continue
      if env=$(tr '\0' '\n' <"$d/environ") 2>/dev/null; then
        case $env in *"$mark"*) ours="$ours$p " grew=1 ;; esac
      elif [ -d "$d" ]; then
        read -r stat <"$d/stat" || continue
        set -- ${stat##*) }
        shift 19
        [ "${1:-0}" -lt "$since" ] || unsure=1
      fi
    done
    first=
  done
} 2>/dev/null
command -v tr >/dev/null || { echo unsure; exit; }
n=0
while [ $n -lt 40 ]; do
  look
  if [ "$ours" = ' ' ]; then
    [ "$unsure" ] && echo unsure || echo gone
    exit
  fi
  kill -9 $ours 2>/dev/null
  n=$((n + 1))
  sleep 0.02 2>/dev/null
done
echo left`

// kill kills the processes of x, and reports whether they were seen gone.
func (e *Executor) kill(ctx context.Context, x *execution) bool {
	ctx, cancel := context.WithTimeout(ctx, killLimit)
	defer cancel()
	// Clocks count whole seconds, and the command began before it said so.
	age := int(time.Since(x.at)/time.Second) + 3
	result, err := e.Simple(ctx, x.command.Target, []string{shell, "-c", killScript, "sh", markVariable + "=" + x.id, strconv.Itoa(age)}, nil)
	said := strings.TrimSpace(string(result.Stdout))
	if err == nil && said == "gone" {
		return true
	}
	e.log.WithContext(ctx).WithField("execution", x.id).WithField("found", said).WithError(err).Warn("the processes of a command were not seen gone")
	return false
}

// resizeScript sets the size, $2 rows and $3 columns, of the terminal that a process
// with the mark $1 has.
const resizeScript = `for d in /proc/[0-9]*; do
  case $(tr '\0' '\n' <"$d/environ") in *"$1"*) stty rows "$2" cols "$3" <"$d/fd/0" && exit ;; esac
done 2>/dev/null`

// resizeAside changes the terminal by a command of its own, for when the way to the
// process is full of input that it does not read. It is done beside the resize that
// waits in that line.
func (e *Executor) resizeAside(ctx context.Context, x *execution, size workload.Size) {
	ctx, cancel := context.WithTimeout(ctx, killLimit)
	defer cancel()
	_, err := e.Simple(ctx, x.command.Target, []string{
		shell, "-c", resizeScript, "sh", markVariable + "=" + x.id, strconv.Itoa(int(size.Rows)), strconv.Itoa(int(size.Columns)),
	}, nil)
	if err != nil && ctx.Err() == nil {
		e.log.WithContext(ctx).WithField("execution", x.id).WithError(err).Debug("a terminal was not resized aside")
	}
}
