{{/* Helpers for the Deployment that follows the queue, and for its ConfigMap. */}}

{{/* Labels that select the pod that follows the queue. */}}
{{- define "minicluster.followSelector" -}}
{{ include "minicluster.selector" . }}
app.kubernetes.io/component: follow
{{- end }}

{{/* The root's values for that pod, as YAML. They lack the certificate: the pod reads it from the Secret. */}}
{{- define "minicluster.rootValues" -}}
{{- $values := omit .Values "global" "enabled" | deepCopy -}}
{{- $_ := set $values "maxSize" (include "minicluster.maxSize" . | int64) -}}
{{- $_ := set $values "groups" (include "minicluster.groups" . | fromJsonArray) -}}
{{- $_ := unset $values.flux "curveCert" -}}
{{- include "minicluster.yaml" $values -}}
{{- end }}
