{{- define "address" -}}
{{ getHostByName "kubernetes.default" }}
{{- end -}}
