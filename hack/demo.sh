#!/usr/bin/env bash
# Shows one workload from its start to its end. make demo brings up a cluster and
# calls: hack/demo.sh --kubeconfig FILE
set -euo pipefail

[[ ${1:-} != --kubeconfig ]] || shift
KUBECONFIG=$(realpath "${1:?usage: hack/demo.sh --kubeconfig FILE}")
cd "$(dirname "$0")/.."
export KUBECONFIG PATH=$PWD/bin:$PATH
readonly namespace=k8s-runner-demo example=examples/hello.yaml
runner= gateway=

heading() { printf '\n=== %s\n' "$*"; }
show() { printf '\n$ %s\n' "$*"; }
try() { show "$@" && "$@"; }

# within SECONDS COMMAND...: repeats the command until it succeeds.
within() {
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		((SECONDS < end)) || { echo "demo: gave up waiting for: $*" >&2; return 1; }
		sleep 0.2
	done
}

# tidy runs at every end: also after an error or Ctrl-C.
tidy() {
	local code=$?
	trap - EXIT
	trap '' INT TERM
	if ((code != 0 && code < 128)) && [[ -s $work/runner.log ]]; then
		heading "The demo failed; the end of the runner's log"
		tail -n 15 "$work/runner.log"
	fi
	heading "Tidying up: the runner is stopped, the namespace deleted"
	for process in $runner $gateway; do
		kill -INT "$process" 2>/dev/null || true
		wait "$process" || true
	done
	kube delete-namespace "$namespace" || code=1
	rm -rf "$work"
	exit "$code"
}

# serving finds the port that the runner was given.
serving() {
	kill -0 "$runner" 2>/dev/null || exit 1
	RUNNER_ADDRESS=$(sed -n 's/.*msg=serving address="\([^"]*\)".*/\1/p' "$work/runner.log")
	[[ -n $RUNNER_ADDRESS ]] && export RUNNER_ADDRESS && k8s-runner ps >"$work/ps" 2>&1
}

# answering finds the port of the gateway.
answering() {
	gateway_address=$(sed -n 's/^serving on //p' "$work/gateway.log")
	[[ -n $gateway_address ]]
}

told() { grep -q "$1" "$work/gateway.log"; }

gone() { [[ -z $(k8s-runner ps -aq) ]]; }

go build -o bin/ ./cmd/k8s-runner ./hack/kube ./hack/gateway
work=$(mktemp -d)
trap tidy EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

heading "A gateway, as a platform has one, which prints what it is told"
SERVICE_TOKEN=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
export SERVICE_TOKEN
show "gateway >gateway.log &"
# An interrupt from the terminal is for this script alone.
setsid gateway >"$work/gateway.log" 2>&1 &
gateway=$!
within 10 answering

heading "A namespace for workloads, and a runner that serves it on a free port, for that platform"
show "kubectl create namespace $namespace"
kube create-namespace "$namespace"
show "k8s-runner serve --kube-namespace $namespace --grpc-address 127.0.0.1:0 --metrics-address 127.0.0.1:0 --gateway-address $gateway_address &"
k8s-runner serve --kube-namespace "$namespace" --grpc-address 127.0.0.1:0 --metrics-address 127.0.0.1:0 --gateway-address "$gateway_address" >"$work/runner.log" 2>&1 &
runner=$!
within 20 serving
show "export RUNNER_ADDRESS=$RUNNER_ADDRESS"
try k8s-runner status

heading "A workload is started from a request, and runs"
show "k8s-runner run --wait -f $example"
id=$(k8s-runner run --wait -f "$example")
echo "$id"

heading "The manifest that was rendered, as the API server has it on record for the runner"
show "kubectl get pod workload-$id -o yaml   # only what the runner set"
kube manifest "$namespace" "workload-$id"

heading "Its strings reached the process byte for byte (the kubelet makes one \$ of two)"
try k8s-runner logs "${id:0:6}"

heading "A command in it, whose output goes into the log as well, while that is followed"
show "k8s-runner logs -f --tail 1 ${id:0:6} &"
k8s-runner logs -f --tail 1 "$id" &>"$work/followed" &
follower=$!
try k8s-runner exec --log -e WHO=you -w /work "${id:0:6}" -- sh -c 'echo "hello $WHO"; ls'
show "cat followed   # what came meanwhile"
within 20 grep -q "hello you" "$work/followed"
cat "$work/followed"
show "k8s-runner exec ${id:0:6} sh -c 'exit 42'"
code=0
k8s-runner exec "${id:0:6}" sh -c 'exit 42' || code=$?
echo "(exit code $code)"
((code == 42))

heading "What runs, and all that is known of it (the beginning of an id is enough)"
try k8s-runner ps -o wide
try k8s-runner inspect "${id:0:6}"

heading "It is stopped, and gone"
try k8s-runner stop "${id:0:6}"
within 40 gone
wait "$follower" || true # it ends with the workload
try k8s-runner ps -a
heading "What the platform was told of all that"
within 10 told STOPPED
show "cat gateway.log"
cat "$work/gateway.log"

heading "Of a workload that is gone nothing is known"
show "k8s-runner inspect $id"
code=0
k8s-runner inspect "$id" || code=$?
echo "(exit code $code)"
((code == 3))
