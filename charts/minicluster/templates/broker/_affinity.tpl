{{/* The brokers' pods prefer to share a zone, and to have a Kubernetes node each: fields of their `affinity`. */}}
{{- define "minicluster.podAffinity" -}}
{{- if not .Values.network.disableAffinity -}}
{{- $selector := include "minicluster.brokerSelector" . -}}
podAffinity:
  preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      podAffinityTerm:
        topologyKey: topology.kubernetes.io/zone
        labelSelector:
          matchLabels: {{- nindent 12 $selector }}
podAntiAffinity:
  preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      podAffinityTerm:
        topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels: {{- nindent 12 $selector }}
{{- end }}
{{- end }}
