{{/*
Changes that a live Job can't take: an upgrade makes the Jobs anew, changes suspended ones in place, or is refused.
*/}}

{{/*
Decides that once per render. The root then has `change`: replace, place, or "" when there is nothing to do or the
post-renderer refuses it, with `hint` in its message. For a replacement the live Jobs are forgotten, so that all else is rendered as for an install.
*/}}
{{- define "minicluster.decide" -}}
{{- if not (hasKey . "change") -}}
{{- $_ := set . "change" "" -}}
{{- $installed := include "minicluster.installedValues" . -}}
{{- if eq $installed "{}" -}}
{{- /* an interrupted upgrade has removed it */ -}}
{{- if and .Values.upgrade.replace .Release.IsUpgrade }}{{ include "minicluster.forgetJobs" . }}{{ end -}}
{{- else if or .Values.upgrade.replace (include "minicluster.isSuspended" .) -}}
{{- $changes := include "minicluster.changes" . | fromJson -}}
{{- $placeable := include "minicluster.placeable" (list . $changes) -}}
{{- if and $changes (eq $placeable "yes") -}}
{{- $_ := set . "change" "place" -}}
{{- else if and .Values.upgrade.replace (or $changes (include "minicluster.isDeleted" .) (include "minicluster.lackingAgent" .)) -}}
{{- include "minicluster.refuseReplacement" (list . $changes) -}}
{{- $_ := set .Values "maxSize" (include "minicluster.maxSize" . | int64) -}}
{{- $_ := set .Values "groups" (include "minicluster.groups" . | fromJsonArray) -}}
{{- include "minicluster.forgetJobs" . -}}
{{- else if ne $placeable "no" -}}
{{- $_ := set . "hint" $placeable -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* Takes the live Jobs for gone, because a hook of this upgrade removes them (replace/_replace.tpl). */}}
{{- define "minicluster.forgetJobs" -}}
{{- $_ := set . "change" "replace" -}}
{{- range include "minicluster.replacedJobs" . | fromJsonArray }}{{ $_ := set $.lookups (printf "Job/%s" .) "{}" }}{{ end -}}
{{- end }}

{{/*
The immutable values that differ from those of the live Job, as JSON: a list of the old and the new text by path. The
post-renderer has the same rule (`changes` in plugin/minicluster/render/upgrade.py).
*/}}
{{- define "minicluster.changes" -}}
{{- $was := include "minicluster.installedValues" . | fromJson -}}
{{- $asked := include "minicluster.immutableValues" . | fromJson -}}
{{- $unset := include "minicluster.flatten" (list "" (.Files.Get "files/defaults.json" | fromJson)) | fromYaml -}}
{{- $former := (include "minicluster.constants" . | fromJson).formerDefaults -}}
{{- $empty := list "{}" "[]" "null" -}}
{{- $changes := dict -}}
{{- range $path := concat (keys $was) (keys $asked) | uniq -}}
{{- $default := ternary (get $unset $path) "null" (hasKey $unset $path) -}}
{{- $old := ternary (get $was $path) $default (hasKey $was $path) -}}
{{- $new := ternary (get $asked $path) $default (hasKey $asked $path) -}}
{{- $same := or (eq $old $new) (and (has $old $empty) (has $new $empty)) (and (eq $new $default) (eq $old (get $former $path)) (hasKey $former $path)) -}}
{{- if not $same }}{{ $_ := set $changes $path (list $old $new) }}{{ end -}}
{{- end -}}
{{- toJson $changes -}}
{{- end }}

{{/*
Whether Kubernetes takes changes in place, because the Jobs are suspended: yes, no, or what the refusal says about it.
Before a version it takes only where the pods may run, and only of a Job that never ran. Arguments: root, changes.
*/}}
{{- define "minicluster.placeable" -}}
{{- $root := first . -}}
{{- $where := "^(groups\\[[0-9]+\\]\\.)?pod\\.(nodeSelector|tolerations|nodeAffinity|labels|annotations|evictable)([.[].*)?$" -}}
{{- $what := "^(containers\\[[0-9]+\\]|groups\\[[0-9]+\\]|flux\\.container|agent)\\.resources([.[].*)?$" -}}
{{- $others := false -}}{{- $resources := false -}}
{{- range $path, $_ := last . -}}
{{- if regexMatch $what $path }}{{ $resources = true }}{{ else if not (regexMatch $where $path) }}{{ $others = true }}{{ end -}}
{{- end -}}
{{- $active := 0 -}}{{- $ran := false -}}
{{- range include "minicluster.jobNames" $root | fromJsonArray -}}
{{- $status := dig "status" dict (include "minicluster.lookup" (list $root "batch/v1" "Job" .) | fromJson) -}}
{{- $active = add $active (dig "active" 0 $status) -}}
{{- if $status.startTime }}{{ $ran = true }}{{ end -}}
{{- end -}}
{{- /* another version of the chart has other programs */ -}}
{{- $same := eq (include "minicluster.liveVersion" $root) $root.Chart.Version -}}
{{- if or $others (not $same) (not (include "minicluster.isSuspended" $root)) (include "minicluster.lackingAgent" $root) }}no
{{- else if $active }}its pods are still ending, and it can change when they are gone
{{- else if or (eq (include "minicluster.supports" (list $root "suspendedChanges")) "yes") (not (or $resources $ran)) }}yes
{{- else }}Kubernetes {{ include "minicluster.since" "suspendedChanges" }} can change it while the MiniCluster is suspended, this is {{ $root.Capabilities.KubeVersion.Version }}
{{- end -}}
{{- end }}

{{/* "true" when the live Job, and that of each group, is suspended and not being deleted, else "". */}}
{{- define "minicluster.isSuspended" -}}
{{- $all := true -}}
{{- range include "minicluster.jobNames" . | fromJsonArray -}}
{{- $job := include "minicluster.lookup" (list $ "batch/v1" "Job" .) | fromJson -}}
{{- if or (not (dig "spec" "suspend" false $job)) (dig "metadata" "deletionTimestamp" "" $job) }}{{ $all = false }}{{ end -}}
{{- end -}}
{{- if $all }}true{{ end -}}
{{- end }}

{{/* "true" when the live Job is being deleted, else "". */}}
{{- define "minicluster.isDeleted" -}}
{{- with dig "metadata" "deletionTimestamp" "" (include "minicluster.liveJob" . | fromJson) }}true{{ end -}}
{{- end }}
