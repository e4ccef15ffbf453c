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
The immutable part of the live Job's spec, as JSON; "" when there is none. It is rendered unchanged: a newer chart, or a
newer Kubernetes, changes only the next Job.
*/}}
{{- define "minicluster.liveSpec" -}}
{{- if ne (include "minicluster.keptValues" .) "{}" -}}
{{- $spec := (fromJson (include "minicluster.keptJob" .)).spec -}}
{{- /* the API server adds these; it refuses a new Job that has them */ -}}
{{- $metadata := omit ($spec.template.metadata | default dict) "creationTimestamp" -}}
{{- $_ := set $metadata "labels" (omit ($metadata.labels | default dict) "controller-uid" "job-name" "batch.kubernetes.io/controller-uid" "batch.kubernetes.io/job-name") -}}
{{- $_ := set $spec.template "metadata" $metadata -}}
{{- $spec = omit $spec "selector" "manualSelector" -}}
{{- range (include "minicluster.constants" . | fromJson).mutableJobFields }}{{ $_ := unset $spec . }}{{ end -}}
{{- if eq (include "minicluster.change" .) "place" }}{{ include "minicluster.changeTemplate" (list $spec.template (include "minicluster.newTemplate" . | fromJson)) }}{{ end -}}
{{- toJson $spec -}}
{{- end -}}
{{- end }}

{{/*
Sets in a pod template, in place, what Kubernetes lets a suspended Job change, as a new template has it. Arguments: live
template, new one.
*/}}
{{- define "minicluster.changeTemplate" -}}
{{- $live := first . -}}{{- $new := last . -}}
{{- $_ := set $live "metadata" $new.metadata -}}
{{- range list "nodeSelector" "tolerations" "affinity" -}}
{{- $_ := unset $live.spec . -}}
{{- if hasKey $new.spec . }}{{ $_ := set $live.spec . (get $new.spec .) }}{{ end -}}
{{- end -}}
{{- range $kind := list "initContainers" "containers" -}}
{{- range $container := get $live.spec $kind | default list -}}
{{- range get $new.spec $kind | default list -}}
{{- if eq .name $container.name }}{{ $_ := set $container "resources" (.resources | default dict) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}
