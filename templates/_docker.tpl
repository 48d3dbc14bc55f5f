{{- /*
A Docker daemon for the main container: a native sidecar, so that it is up before
main starts and goes after it. It listens on loopback only, where no other Pod
reaches it, and without TLS. It takes the whole input.
*/ -}}
{{- define "docker-daemon" -}}
{{- $rootless := eq .Docker.Implementation "rootless" -}}
name: docker-daemon
image: {{ .Docker.Image }}
restartPolicy: Always
{{- if $rootless }}
args: [dockerd, --host=unix:///run/user/1000/docker.sock, --host=tcp://127.0.0.1:2375, --tls=false]
{{- else }}
args: [dockerd, --host=unix:///var/run/docker.sock, --host=tcp://127.0.0.1:2375, --tls=false]
{{- end }}
env:
- name: DOCKER_TLS_CERTDIR
  value: ""
{{- if $rootless }}
# The daemon has a network of its own: this makes its port the Pod's.
- name: DOCKERD_ROOTLESS_ROOTLESSKIT_FLAGS
  value: -p 127.0.0.1:2375:2375/tcp
{{- end }}
# Until the daemon answers, main does not start.
startupProbe:
  exec:
    command: [docker, --host=tcp://127.0.0.1:2375, version]
  periodSeconds: 1
  timeoutSeconds: 5
  failureThreshold: 120
{{- with .Docker.Resources }}
resources: {{ . }}
{{- end }}
securityContext:
{{- if .RunAsUser }}
  # That is the user of the workload's processes; the daemon needs its image's.
  runAsUser: {{ if $rootless }}1000{{ else }}0{{ end }}
{{- end }}
{{- if $rootless }}
  # A daemon without root makes namespaces, which the default profiles forbid.
  seccompProfile:
    type: Unconfined
  appArmorProfile:
    type: Unconfined
{{- else }}
  privileged: true
{{- end }}
volumeMounts:
{{- if $rootless }}
- name: docker-data
  mountPath: /home/rootless/.local/share
- name: docker-tun
  mountPath: /dev/net/tun
{{- else }}
- name: docker-data
  mountPath: /var/lib/docker
{{- end }}
{{- end }}

{{- /* The volumes of the daemon. It takes .Docker. */ -}}
{{- define "docker-volumes" -}}
- name: docker-data
  emptyDir: {}
{{- if eq .Implementation "rootless" }}
- name: docker-tun
  hostPath:
    path: /dev/net/tun
    type: CharDevice
{{- end }}
{{- end }}
