{{/*
The fields of job.template. It has no field that the chart writes: the post-renderer refuses those.
*/}}
{{- define "minicluster.jobFields" -}}
{{- $own := (include "minicluster.constants" . | fromJson).ownJobFields -}}
{{- $spec := get .Values.job.template "spec" -}}
{{- if kindIs "map" $spec }}
{{- range $field, $value := $spec }}
{{- if not (hasKey $own $field) }}
{{ toJson $field }}: {{- include "minicluster.yaml" $value | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
