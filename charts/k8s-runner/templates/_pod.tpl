{{/* What the runner's Pod and the one that stops the workloads have in common. */}}
{{- define "k8s-runner.podSpec" -}}
serviceAccountName: {{ include "k8s-runner.fullname" . }}
automountServiceAccountToken: true
enableServiceLinks: false
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile: {type: RuntimeDefault}
volumes:
  - name: config
    projected:
      sources:
        - configMap: {name: {{ include "k8s-runner.fullname" . }}}
        - configMap: {name: {{ include "k8s-runner.fullname" . }}-catalog}
  {{- with .Values.tls.secretName }}
  - name: tls
    secret:
      secretName: {{ . }}
      defaultMode: 288 # r--r-----
  {{- end }}
  {{- if .Values.gateway.tokenSecret.name }}
  {{- with .Values.gateway.caSecretName }}
  - name: gateway-ca
    secret:
      secretName: {{ . }}
      defaultMode: 288 # r--r-----
      items: [{key: ca.crt, path: ca.crt}]
  {{- end }}
  {{- end }}
{{- end -}}

{{- define "k8s-runner.container" -}}
image: {{ include "k8s-runner.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
env:
  # The garbage collector works harder before the kernel ends the process.
  - name: GOMEMLIMIT
    valueFrom: {resourceFieldRef: {resource: limits.memory}}
  {{- if .Values.gateway.tokenSecret.name }}
  - name: SERVICE_TOKEN
    valueFrom:
      secretKeyRef:
        name: {{ .Values.gateway.tokenSecret.name }}
        key: {{ .Values.gateway.tokenSecret.key }}
  {{- end }}
  {{- with .Values.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
volumeMounts:
  - name: config
    mountPath: /etc/k8s-runner
    readOnly: true
  {{- if .Values.tls.secretName }}
  - name: tls
    mountPath: /etc/k8s-runner-tls
    readOnly: true
  {{- end }}
  {{- if and .Values.gateway.tokenSecret.name .Values.gateway.caSecretName }}
  - name: gateway-ca
    mountPath: /etc/k8s-runner-gateway
    readOnly: true
  {{- end }}
{{- end -}}
