{{/* The Jobs that this upgrade keeps: the live ones, unless it makes them anew. All else is then rendered as for an install. */}}

{{/* A live Job that stays, as JSON; "{}" when there is none. Arguments: root, name of the Job. */}}
{{- define "minicluster.kept" -}}
{{- if eq (include "minicluster.change" (first .)) "replace" }}{}{{ else }}{{ include "minicluster.lookup" (list (first .) "batch/v1" "Job" (last .)) }}{{ end -}}
{{- end }}

{{/* The Job of this release, if it stays. */}}
{{- define "minicluster.keptJob" -}}
{{- include "minicluster.kept" (list . (include "minicluster.jobName" .)) -}}
{{- end }}

{{/* The immutable values that it was made with, as JSON. */}}
{{- define "minicluster.keptValues" -}}
{{- include "minicluster.recordOf" (fromJson (include "minicluster.keptJob" .)) -}}
{{- end }}

{{/* The chart version whose programs its pods run; "" when there is none. */}}
{{- define "minicluster.keptVersion" -}}
{{- include "minicluster.versionOf" (list . (fromJson (include "minicluster.keptJob" .))) -}}
{{- end }}

{{/*
The specs of the Jobs that stay, by name, for the post-renderer (plugin/minicluster/render/revision.py), as JSON in base64; "" for
none. The chart renders new Jobs, whose immutable part gives way to the live one.
*/}}
{{- define "minicluster.keptSpecs" -}}
{{- $jobs := dict -}}
{{- range include "minicluster.jobNames" . | fromJsonArray -}}
{{- $job := include "minicluster.kept" (list $ .) | fromJson -}}
{{- if ne (include "minicluster.recordOf" $job) "{}" }}{{ $_ := set $jobs . $job.spec }}{{ end -}}
{{- end -}}
{{- with $jobs }}{{ dict "change" (include "minicluster.change" $) "jobs" . | toJson | b64enc }}{{ end -}}
{{- end }}
