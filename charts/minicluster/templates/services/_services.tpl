{{/* The pod of the services: its labels, and what an upgrade keeps of it. */}}

{{/* Labels that select the pod of the services. */}}
{{- define "minicluster.servicesSelector" -}}
{{ include "minicluster.selector" . }}
app.kubernetes.io/component: services
{{- end }}

{{/* The chart's own labels of that pod. With minimalService the lead's Service covers it too. */}}
{{- define "minicluster.servicesLabels" -}}
{{ include "minicluster.servicesSelector" . }}
{{ include "minicluster.hostSelector" . }}
{{- if .Values.flux.minimalService }}
batch.kubernetes.io/job-completion-index: "0"
{{- end }}
{{- end }}

{{/*
Selector and pod template of the live services, as JSON; "" when there are none, or when the values of the services, or
the place of a suspended cluster's pods, change.
*/}}
{{- define "minicluster.liveServices" -}}
{{- if and (ne (include "minicluster.keptValues" .) "{}") (ne (include "minicluster.change" .) "place") -}}
{{- $name := printf "%s-services" (include "minicluster.name" .) -}}
{{- $live := include "minicluster.lookup" (list . "apps/v1" "Deployment" $name) | fromJson -}}
{{- if eq (dig "spec" "template" "metadata" "annotations" "minicluster/services" "" $live) (include "minicluster.servicesDigest" .) -}}
{{- $template := set $live.spec.template "metadata" (omit $live.spec.template.metadata "creationTimestamp") -}}
{{- dict "selector" $live.spec.selector "template" $template | toJson -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* The digest of the values of the services, by which an upgrade finds that they changed. */}}
{{- define "minicluster.servicesDigest" -}}
{{- toJson .Values.services | sha256sum -}}
{{- end }}
