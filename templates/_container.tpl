{{- /* One container of the Pod, of any role. */ -}}
{{- define "container" -}}
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
{{- with .Env }}
env: {{ . }}
{{- end }}
{{- with .Mounts }}
volumeMounts: {{ . }}
{{- end }}
{{- with .ReadOnlyRoot }}
securityContext:
  readOnlyRootFilesystem: {{ . }}
{{- end }}
{{- end }}
