{{/* Labels: those of every object, and those that select pods. */}}

{{/* Labels of every object; never in the pod template, which must not change with the chart's version. */}}
{{- define "minicluster.labels" -}}
{{ include "minicluster.selector" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* Labels that every object of this cluster has. */}}
{{- define "minicluster.selector" -}}
app.kubernetes.io/name: minicluster
app.kubernetes.io/instance: {{ include "minicluster.name" . | quote }}
{{- end }}

{{/* The label of all pods that have a host name in the cluster's domain: brokers and services. */}}
{{- define "minicluster.hostSelector" -}}
minicluster/domain: {{ include "minicluster.service" . | quote }}
{{- end }}

{{/* Labels that select this cluster's brokers; stable for its life. */}}
{{- define "minicluster.brokerSelector" -}}
{{ include "minicluster.selector" . }}
app.kubernetes.io/component: broker
{{- end }}

{{/* Labels that select the lead. In groups, too, a pod has the index 0. */}}
{{- define "minicluster.leadSelector" -}}
{{ include "minicluster.brokerSelector" . }}
{{- if .Values.groups }}
batch.kubernetes.io/job-name: {{ include "minicluster.name" . | quote }}
{{- end }}
batch.kubernetes.io/job-completion-index: "0"
{{- end }}
