{{- define "endless" -}}
{{ range 1000000000 }}{{ . }}{{ end }}
{{- end -}}
