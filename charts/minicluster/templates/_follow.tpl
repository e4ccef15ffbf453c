{{/* What the Deployment that follows the queue has in common with its ConfigMap. */}}

{{/* Labels that select its pod. */}}
{{- define "minicluster.followSelector" -}}
{{ include "minicluster.selector" . }}
app.kubernetes.io/component: follow
{{- end }}

{{/* The values by which it knows the root, as YAML: without the certificate, which it reads in the Secret. */}}
{{- define "minicluster.rootValues" -}}
{{- $values := omit .Values "global" | deepCopy -}}
{{- $_ := set $values "maxSize" (include "minicluster.maxSize" . | int64) -}}
{{- $_ := unset $values.flux "curveCert" -}}
{{- include "minicluster.yaml" $values -}}
{{- end }}
