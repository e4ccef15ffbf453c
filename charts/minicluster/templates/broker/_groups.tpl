{{/* Groups: their sizes, and the values that a group's pods have in place of the cluster's. */}}

{{/* The groups as a JSON list, with size and maxSize. Where maxSize is unset, a live group keeps its own. */}}
{{- define "minicluster.groups" -}}
{{- $root := . -}}
{{- $installed := fromJson (include "minicluster.foundValues" .) -}}
{{- $groups := list -}}
{{- range $index, $given := .Values.groups }}
{{- $group := deepCopy $given }}
{{- if not (hasKey $group "size") }}{{ $_ := set $group "size" 1 }}{{ end }}
{{- $job := include "minicluster.lookup" (list $root "batch/v1" "Job" (printf "%s-%s" (include "minicluster.name" $root) .name)) | fromJson }}
{{- /* the cluster's own Job may be gone */}}
{{- $left := get (include "minicluster.recordOf" $job | fromJson) "maxSize" }}
{{- $most := $group.maxSize | default (get $installed (printf "groups[%d].maxSize" $index)) | default $left | default (max 1 $group.size) | int64 }}
{{- $groups = append $groups (set $group "maxSize" $most) }}
{{- end -}}
{{- toJson $groups -}}
{{- end }}

{{/*
The values of a group's Job as JSON: those of the cluster, with what the group has in their place. Its pods have no agent.
The post-renderer has the same rule (MiniClusterModel.groups in plugin/minicluster/render/model.py). Arguments: root, group.
*/}}
{{- define "minicluster.groupValues" -}}
{{- $root := first . -}}{{- $group := last . -}}
{{- $values := deepCopy $root.Values -}}
{{- $_ := set $values "size" $group.size -}}
{{- $_ := set $values "maxSize" $group.maxSize -}}
{{- range $field, $value := $group.pod }}{{ $_ := set $values.pod $field $value }}{{ end -}}
{{- $runner := index $values.containers (include "minicluster.runnerPlace" $root | int) -}}
{{- range $field := list "image" "resources" }}
{{- if hasKey $group $field }}{{ $_ := set $runner $field (get $group $field) }}{{ end }}
{{- end -}}
{{- $_ := set $values "groups" list -}}
{{- toJson $values -}}
{{- end }}

{{/* The label of a group's Job and pods; nothing for the cluster's own. */}}
{{- define "minicluster.groupLabels" -}}
{{- with .group }}
minicluster/group: {{ . | quote }}
{{- end }}
{{- end }}

{{/* The names of the Jobs as a JSON list: that of the cluster, and those of its groups. */}}
{{- define "minicluster.jobNames" -}}
{{- $name := include "minicluster.name" . -}}
{{- $names := list $name -}}
{{- range .Values.groups }}{{ $names = append $names (printf "%s-%s" $name .name) }}{{ end -}}
{{- toJson $names -}}
{{- end }}
