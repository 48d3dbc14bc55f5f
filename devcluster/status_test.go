package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestWriteStatus(t *testing.T) {
	i := instance{
		Process:  process{PID: 100},
		Settings: settings{Dir: "/state", APIPort: 16443, MirrorPort: 15001, Simulated: true},
	}
	kids := []child{
		{Name: "kwok", PID: 105, RSS: 50 << 20, Age: 61 * time.Second},
		{Name: "etcd", PID: 101, RSS: 100 << 20, Age: 63*time.Second + 400*time.Millisecond},
		{Name: "sleep", PID: 106, RSS: 1 << 20}, // adopted
		{Name: "kube-controller-manager", PID: 103, RSS: 2 << 20, Age: time.Hour},
		{Name: "kube-scheduler", PID: 104, RSS: 3 << 20, Age: time.Hour},
	}
	var b bytes.Buffer
	writeStatus(&b, i, kids)
	want := `mode        simulated
state       /state
KUBECONFIG  /state/kubeconfig
API server  https://127.0.0.1:16443
node        pid 100

PROCESS                  PID  MEMORY   UP           LOG
etcd                     101  100 MiB  1m3s         /state/log/etcd.log
kube-apiserver           -    -        not running  /state/log/kube-apiserver.log
kube-controller-manager  103  2 MiB    1h0m0s       /state/log/kube-controller-manager.log
kube-scheduler           104  3 MiB    1h0m0s       /state/log/kube-scheduler.log
kwok                     105  50 MiB   1m1s         /state/log/kwok.log
in all                        155 MiB
`
	var got strings.Builder
	for line := range strings.Lines(b.String()) {
		got.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	if got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
}
