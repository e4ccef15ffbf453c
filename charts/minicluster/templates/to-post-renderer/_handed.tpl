{{/* What the hand-over document says of the live release. */}}

{{/*
What the post-renderer has to know of the live cluster (plugin/minicluster/render/upgrade.py), as JSON in base64, which
carries any text unchanged; "" when there is none.
*/}}
{{- define "minicluster.installed" -}}
{{- $was := fromJson (include "minicluster.keptValues" .) -}}
{{- /* without pods, new files and values do no harm */ -}}
{{- $decision := include "minicluster.decision" . | fromJson -}}
{{- if and $was (ne $decision.change "place") -}}
{{- $asked := fromJson (include "minicluster.immutableValues" (list . $was)) -}}
{{- $mutable := (include "minicluster.constants" . | fromJson).mutableValues -}}
{{- $files := dig "data" dict (include "minicluster.liveConfigMap" . | fromJson) -}}
{{- dict "release" .Release.Name "was" $was "asked" $asked "mutable" $mutable "files" $files "hint" $decision.hint | toJson | b64enc -}}
{{- end -}}
{{- end }}

{{/*
What Helm keeps of the last revision, from its Secret, for the post-renderer (plugin/minicluster/render/revision.py); ""
without a live Job. One hand-over document of a release has it: all charts of a release share `Release`.
*/}}
{{- define "minicluster.last" -}}
{{- $revision := sub .Release.Revision 1 -}}
{{- $isLive := false -}}
{{- range include "minicluster.jobNames" . | fromJsonArray -}}
{{- if ne (include "minicluster.kept" (list $ .)) "{}" }}{{ $isLive = true }}{{ end -}}
{{- end -}}
{{- if and (gt $revision 0) $isLive (not (hasKey .Release "last")) -}}
{{- $_ := set .Release "last" "handed over" -}}
{{- $secret := include "minicluster.lookup" (list . "v1" "Secret" (printf "sh.helm.release.v1.%s.v%d" .Release.Name $revision)) | fromJson -}}
{{- dig "data" "release" "" $secret -}}
{{- end -}}
{{- end }}

{{/*
The live Jobs of the release's MiniClusters, for the post-renderer (plugin/minicluster/render/revision.py): an upgrade that
adds one MiniCluster and removes another may be a new name of one. As JSON in base64; "" for one that has a Job.
*/}}
{{- define "minicluster.others" -}}
{{- $jobs := list -}}
{{- if and .Release.IsUpgrade (eq (include "minicluster.foundJob" .) "{}") -}}
{{- range (include "minicluster.lookup" (list . "batch/v1" "Job" "") | fromJson).items -}}
{{- $annotations := .metadata.annotations | default dict -}}
{{- if and (eq (get $annotations "meta.helm.sh/release-name") $.Release.Name) (hasKey $annotations "minicluster/immutable") -}}
{{- $labels := .metadata.labels | default dict -}}
{{- $jobs = append $jobs (dict "name" .metadata.name "chart" (get $labels "helm.sh/chart") "group" (get $labels "minicluster/group") "deleted" (hasKey .metadata "deletionTimestamp")) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- with $jobs }}{{ dict "chart" $.Chart.Name "jobs" . | toJson | b64enc }}{{ end -}}
{{- end }}
