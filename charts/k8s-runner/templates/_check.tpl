{{/* What the schema cannot see: values that do not go together. */}}
{{- define "k8s-runner.check" -}}
{{- $docker := include "k8s-runner.docker" . -}}
{{- $level := include "k8s-runner.podSecurity" . -}}
{{- $profile := dig "security" "profile" "default" .Values.config -}}
{{- if eq (include "k8s-runner.workloads" .) .Release.Namespace -}}
{{- fail (printf "workloads.namespace is %s, which is the runner's own. Workloads need another one: the runner's Role, quota and Pod Security level are that namespace's" .Release.Namespace) -}}
{{- end -}}
{{- if and $docker (eq $profile "restricted") -}}
{{- fail (printf "config.security.profile is restricted, which withdraws docker, but config.capabilities.implementations.docker is %s. Drop one of them" $docker) -}}
{{- end -}}
{{- if and $docker (ne $level "privileged") .Values.workloads.createNamespace -}}
{{- fail (printf "docker as %s needs workloads.podSecurity: privileged, and it is %s: Kubernetes would refuse every such workload. Leave workloads.podSecurity empty" $docker $level) -}}
{{- end -}}
{{- if and (eq $level "restricted") (ne $profile "restricted") .Values.workloads.createNamespace -}}
{{- fail "workloads.podSecurity: restricted refuses every Pod that the runner makes unless config.security.profile is restricted" -}}
{{- end -}}
{{- if and .Values.ziti.enabled (not .Values.gateway.tokenSecret.name) -}}
{{- fail "ziti.enabled needs gateway.tokenSecret.name: a Secret with the service token, with which the runner enrols and gets its identity" -}}
{{- end -}}
{{- if and .Values.tls.clientCertificates (not .Values.tls.secretName) -}}
{{- fail "tls.clientCertificates needs tls.secretName: the Secret whose ca.crt signs the callers' certificates" -}}
{{- end -}}
{{- if .Values.fence.enabled -}}
{{- range $key := list "podCIDRs" "serviceCIDRs" -}}
{{- range $cidr := index $.Values.fence $key -}}
{{- if include "k8s-runner.overlap" (list $cidr $.Values.fence.overlay.cidr) -}}
{{- fail (printf "fence.%s has %s, which is in fence.overlay.cidr %s: the way to the overlay would be one into the cluster. Give the overlay a range that the cluster does not use, in its own configuration and in fence.overlay.cidr" $key $cidr $.Values.fence.overlay.cidr) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $cidr := $.Values.fence.excludeCIDRs -}}
{{- if include "k8s-runner.overlap" (list $cidr $.Values.fence.overlay.cidr) -}}
{{- fail (printf "fence.excludeCIDRs has %s, which is in fence.overlay.cidr %s: the rule for the overlay would open it. Narrow fence.overlay.cidr to what the overlay uses" $cidr $.Values.fence.overlay.cidr) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The first and the last address of an IPv4 range, as numbers. */}}
{{- define "k8s-runner.span" -}}
{{- $parts := splitList "/" . -}}
{{- $address := int64 0 -}}
{{- range splitList "." (first $parts) -}}
{{- $address = add (mul $address 256) (atoi .) -}}
{{- end -}}
{{- $size := int64 1 -}}
{{- range until (int (sub 32 (atoi (last $parts)))) -}}
{{- $size = mul $size 2 -}}
{{- end -}}
{{- $from := sub $address (mod $address $size) -}}
{{- dict "from" $from "to" (sub (add $from $size) 1) | toJson -}}
{{- end -}}

{{/* Something if two ranges share an address. Those of IPv6 do not count. */}}
{{- define "k8s-runner.overlap" -}}
{{- if not (or (contains ":" (first .)) (contains ":" (last .))) -}}
{{- $a := include "k8s-runner.span" (first .) | fromJson -}}
{{- $b := include "k8s-runner.span" (last .) | fromJson -}}
{{- if and (le (int64 $a.from) (int64 $b.to)) (le (int64 $b.from) (int64 $a.to)) -}}
yes
{{- end -}}
{{- end -}}
{{- end -}}
