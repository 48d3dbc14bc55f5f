{{- define "k8s-runner.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "k8s-runner.workloads" -}}
{{- .Values.workloads.namespace | default (printf "%s-workloads" .Release.Namespace) -}}
{{- end -}}

{{- define "k8s-runner.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "k8s-runner.labels" -}}
{{ include "k8s-runner.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "k8s-runner.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* The implementation of docker, or nothing. */}}
{{- define "k8s-runner.docker" -}}
{{- dig "capabilities" "implementations" "docker" "" .Values.config -}}
{{- end -}}

{{- define "k8s-runner.podSecurity" -}}
{{- if .Values.workloads.podSecurity -}}
{{- .Values.workloads.podSecurity -}}
{{- else if eq (dig "security" "profile" "default" .Values.config) "restricted" -}}
restricted
{{- else if or (include "k8s-runner.docker" .) (dig "security" "allowed_privileges" (list) .Values.config) -}}
privileged
{{- else -}}
baseline
{{- end -}}
{{- end -}}

{{/* The runner's file: what the values say of it, under what only the chart knows. */}}
{{- define "k8s-runner.config" -}}
{{- $c := deepCopy .Values.config -}}
{{- $own := dict
  "grpc" (dict "address" ":50051")
  "metrics" (dict "address" ":9090")
  "kube" (dict "namespace" (include "k8s-runner.workloads" .))
  "catalog" (dict "path" "/etc/k8s-runner/catalog.yaml")
-}}
{{- if .Values.tls.secretName -}}
{{- $tls := dict "cert" "/etc/k8s-runner-tls/tls.crt" "key" "/etc/k8s-runner-tls/tls.key" -}}
{{- if .Values.tls.clientCertificates -}}
{{- $_ := set $tls "client_ca" "/etc/k8s-runner-tls/ca.crt" -}}
{{- end -}}
{{- $_ := set $own "tls" $tls -}}
{{- else if not .Values.ziti.enabled -}}
{{- $_ := set $own.grpc "plaintext" true -}}
{{- end -}}
{{- with .Values.templates.allowedKinds -}}
{{- $kinds := list -}}
{{- range . -}}
{{- $kinds = append $kinds (printf "%s %s" .apiVersion .kind) -}}
{{- end -}}
{{- $_ := set $own "templates" (dict "allowed_kinds" $kinds) -}}
{{- end -}}
{{- if .Values.gateway.tokenSecret.name -}}
{{- $gateway := dict "address" .Values.gateway.address "tls" .Values.gateway.tls -}}
{{- if .Values.gateway.caSecretName -}}
{{- $_ := set $gateway "ca" "/etc/k8s-runner-gateway/ca.crt" -}}
{{- end -}}
{{- with .Values.gateway.runnerID -}}
{{- $_ := set $gateway "runner_id" . -}}
{{- end -}}
{{- $_ := set $own "gateway" $gateway -}}
{{- end -}}
{{- if .Values.ziti.enabled -}}
{{- $_ := set $own "ziti" (dict "enabled" true) -}}
{{- end -}}
{{- toYaml (mergeOverwrite $c $own) -}}
{{- end -}}
