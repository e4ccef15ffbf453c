{{/*
Gang schedulers: how a pod names its PodGroup, and how many pods start together.
*/}}

{{- define "minicluster.gangLabels" -}}
{{- if eq .Values.gang.kind "coscheduling" }}
scheduling.x-k8s.io/pod-group: {{ include "minicluster.name" . | quote }}
{{- end }}
{{- end }}

{{- define "minicluster.gangAnnotations" -}}
{{- if eq .Values.gang.kind "volcano" }}
scheduling.k8s.io/group-name: {{ include "minicluster.name" . | quote }}
{{- end }}
{{- end }}

{{- define "minicluster.gangSize" -}}
{{- $least := ternary .Values.autoscaling.min .Values.size .Values.autoscaling.enabled -}}
{{- .Values.minSize | default $least | int64 -}}
{{- end }}
