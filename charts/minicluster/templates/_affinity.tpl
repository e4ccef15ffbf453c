{{/* Affinity of the brokers' pods: the nodes of the values; the pods prefer to share a zone, and to have a Kubernetes node each. */}}
{{- define "minicluster.affinity" -}}
{{- if or .Values.pod.nodeAffinity (not .Values.network.disableAffinity) -}}
affinity:
  {{- with include "minicluster.nodeAffinity" . }}
  {{- nindent 2 . }}
  {{- end }}
  {{- if not .Values.network.disableAffinity }}
  {{- $selector := include "minicluster.brokerSelector" . }}
  podAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: topology.kubernetes.io/zone
          labelSelector:
            matchLabels: {{- nindent 14 $selector }}
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: kubernetes.io/hostname
          labelSelector:
            matchLabels: {{- nindent 14 $selector }}
  {{- end }}
{{- end }}
{{- end }}
