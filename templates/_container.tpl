{{- /* One container of the Pod, of any role. It takes .Container and .Input. */ -}}
{{- define "container" -}}
{{- $main := eq .Container.Role "main" -}}
{{- $docker := and $main .Input.Docker -}}
{{- $restricted := .Input.Restricted -}}
{{- with .Container -}}
name: {{ .Name }}
image: {{ .Image }}
{{- with .RestartPolicy }}
restartPolicy: {{ . }}
{{- end }}
{{- with .Command }}
command: {{ . }}
{{- end }}
{{- with .Args }}
args: {{ . }}
{{- end }}
{{- with .WorkingDir }}
workingDir: {{ . }}
{{- end }}
{{- if $docker }}
env: {{ append .Env (dict "name" "DOCKER_HOST" "value" "tcp://localhost:2375") }}
{{- else if .Env }}
env: {{ .Env }}
{{- end }}
{{- with .Mounts }}
volumeMounts: {{ . }}
{{- end }}
{{- with .Resources }}
resources: {{ . }}
{{- end }}
{{- if or .ReadOnlyRoot .Capabilities $restricted }}
securityContext:
  {{- with .ReadOnlyRoot }}
  readOnlyRootFilesystem: {{ . }}
  {{- end }}
  {{- if $restricted }}
  allowPrivilegeEscalation: false
  {{- end }}
  {{- if or .Capabilities $restricted }}
  capabilities:
    {{- if $restricted }}
    drop: [ALL]
    {{- end }}
    {{- with .Capabilities }}
    add: {{ . }}
    {{- end }}
  {{- end }}
{{- end }}
{{- end }}
{{- end }}
