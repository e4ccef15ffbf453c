{{/*
Changes that a live Job can't take: an upgrade makes the Jobs anew, changes suspended ones in place, or is refused.
The helpers return values, which depend on the values of the release and on what is live, and set nothing.
*/}}

{{/*
What an upgrade does about the Jobs, as JSON: `change` is replace, place, or "" when they stay or the post-renderer refuses
the upgrade, with `hint` in its message.
*/}}
{{- define "minicluster.decision" -}}
{{- include "minicluster.once" (list (.cluster | default .) "minicluster.decide") -}}
{{- end }}

{{- define "minicluster.decide" -}}
{{- $replaces := .Values.upgrade.replace -}}
{{- $change := "" -}}{{- $hint := "" -}}
{{- if eq (include "minicluster.foundValues" .) "{}" -}}
{{- /* an interrupted upgrade has removed the Job */ -}}
{{- if and $replaces .Release.IsUpgrade }}{{ $change = "replace" }}{{ end -}}
{{- else if or $replaces (include "minicluster.isSuspended" .) -}}
{{- $changes := include "minicluster.changes" . | fromJson -}}
{{- $placeable := include "minicluster.placeable" (list . $changes) -}}
{{- if and $changes (eq $placeable "yes") }}{{ $change = "place" }}
{{- else if and $replaces (or $changes (include "minicluster.isDeleted" .) (include "minicluster.lackingAgent" .)) }}{{ $change = "replace" }}
{{- else if ne $placeable "no" }}{{ $hint = $placeable }}
{{- end -}}
{{- end -}}
{{- dict "change" $change "hint" $hint | toJson -}}
{{- end }}

{{/* The `change` of that decision. */}}
{{- define "minicluster.change" -}}
{{- (include "minicluster.decision" . | fromJson).change -}}
{{- end }}

{{/*
The immutable values that differ from those of the live Job, as JSON: a list of the old and the new text by path. The
post-renderer has the same rule (`changes` in plugin/minicluster/render/upgrade.py).
*/}}
{{- define "minicluster.changes" -}}
{{- $was := include "minicluster.foundValues" . | fromJson -}}
{{- $asked := include "minicluster.immutableValues" (list . $was) | fromJson -}}
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
{{- $same := eq (include "minicluster.foundVersion" $root) $root.Chart.Version -}}
{{- if or $others (not $same) (not (include "minicluster.isSuspended" $root)) (include "minicluster.lackingAgent" $root) }}no
{{- else if $active }}its pods are still ending, and it can change when they are gone
{{- else if or (eq (include "minicluster.supports" (list $root "suspendedChanges")) "yes") (not (or $resources $ran)) }}yes
{{- else }}Kubernetes {{ include "minicluster.since" "suspendedChanges" }} can change it while the MiniCluster is suspended, this is {{ $root.Capabilities.KubeVersion.Version }}
{{- end -}}
{{- end }}
