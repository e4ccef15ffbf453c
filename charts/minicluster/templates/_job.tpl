{{/*
The fields of job.template for the Job's spec, as YAML. Fields that the chart writes itself are left out; the
post-renderer refuses them.
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
