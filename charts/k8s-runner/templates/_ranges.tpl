{{/* What is not the public internet, by the registries of special-purpose addresses. */}}
{{- define "k8s-runner.privateIPv4" -}}
- 0.0.0.0/8 # this host
- 10.0.0.0/8 # private
- 100.64.0.0/10 # carriers and overlays: its own rule opens what is the overlay's
- 127.0.0.0/8 # loopback
- 168.63.129.16/32 # a cloud's host and metadata
- 169.254.0.0/16 # link-local: metadata of most clouds
- 172.16.0.0/12 # private
- 192.0.0.0/24 # protocols: metadata of a cloud
- 192.168.0.0/16 # private
- 198.18.0.0/15 # benchmarks of networks
- 224.0.0.0/4 # multicast
- 240.0.0.0/4 # reserved
{{- end -}}

{{- define "k8s-runner.privateIPv6" -}}
- ::/127 # unspecified and loopback
- 64:ff9b::/96 # IPv4 behind a translator
- 64:ff9b:1::/48 # the same, private
- 2002::/16 # IPv4 in a tunnel
- fc00::/7 # private: metadata of most clouds
- fe80::/10 # link-local
- ff00::/8 # multicast
{{- end -}}
