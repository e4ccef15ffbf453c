{{/* Helpers for the Deployment that follows the queue, and for its ConfigMap. */}}

{{/* Labels that select the pod that follows the queue. */}}
{{- define "minicluster.followSelector" -}}
{{ include "minicluster.selector" . }}
app.kubernetes.io/component: follow
{{- end }}

{{/* The security context of that pod: that of the values, but never root, which its program has no use for. */}}
{{- define "minicluster.followSecurity" -}}
{{- $given := deepCopy .Values.pod.securityContext -}}
{{- range list "runAsUser" "runAsGroup" }}{{ if eq (get $given . | default 0 | int64) 0 }}{{ $_ := unset $given . }}{{ end }}{{ end -}}
{{- merge (dict "runAsNonRoot" true) $given (dict "seccompProfile" (dict "type" "RuntimeDefault")) | include "minicluster.yaml" -}}
{{- end }}

{{/* The root's values for that pod, as YAML. They lack the certificate: the pod reads it from the Secret. */}}
{{- define "minicluster.rootValues" -}}
{{- $values := omit .Values "global" "enabled" | deepCopy -}}
{{- $_ := set $values "maxSize" (include "minicluster.maxSize" . | int64) -}}
{{- $_ := set $values "groups" (include "minicluster.groups" . | fromJsonArray) -}}
{{- $_ := unset $values.flux "curveCert" -}}
{{- include "minicluster.yaml" $values -}}
{{- end }}
