{{/*
What is immutable on a live cluster: the values that its Job notes, what it keeps, and which changes are refused.
All values are immutable but the `mutableValues` of files/constants.json. The Job notes them in an annotation.
*/}}

{{/*
The immutable values as a flat map of path to text, as JSON. The post-renderer compares those of the install with them
(plugin/minicluster/render/upgrade.py).
*/}}
{{- define "minicluster.immutableValues" -}}
{{- $values := deepCopy .Values -}}
{{- range (include "minicluster.constants" . | fromJson).mutableValues }}
{{- $path := splitList "." . }}{{ $map := $values }}
{{- range initial $path }}{{ $map = get $map . | default dict }}{{ end }}
{{- $_ := unset $map (last $path) }}
{{- end -}}
{{- range $values.containers }}{{ range .volumes }}{{ include "minicluster.immutableClaim" . }}{{ end }}{{ end -}}
{{- include "minicluster.immutableClaim" $values.state -}}
{{- /* one text: as paths, {gang: {}} and {basic: {}} would be the same */ -}}
{{- $_ := set $values.job "template" (toJson $values.job.template) -}}
{{- $_ := set $values.agent "does" (include "minicluster.agent" .) -}}
{{- if ne $values.agent.does "none" }}{{ $_ := set $values "metrics" (pick .Values.metrics "port") }}{{ end -}}
{{- $_ := set $values "maxSize" (include "minicluster.maxSize" .) -}}
{{- $groups := list -}}
{{- range include "minicluster.groups" . | fromJsonArray }}{{ $groups = append $groups (omit . "size" "minSize" "autoscaling") }}{{ end -}}
{{- $_ := set $values "groups" $groups -}}
{{- $_ := set $values.flux.container "mode" (include "minicluster.viewMode" .) -}}
{{- fromYaml (include "minicluster.flatten" (list "" $values)) | toJson -}}
{{- end }}

{{/*
Changes a volume in place, so that only its immutable part is recorded: that it has a claim of the release, but not the
claim's capacity or metadata.
*/}}
{{- define "minicluster.immutableClaim" -}}
{{- if .capacity }}{{ $_ := set . "capacity" "a claim of the release" }}{{ end -}}
{{- range list "labels" "annotations" "keep" }}{{ $_ := unset $ . }}{{ end -}}
{{- end }}

{{/* A line `path: text` for each leaf of a value. A digest stands for a long text. Arguments: path, value. */}}
{{- define "minicluster.flatten" -}}
{{- $path := first . -}}{{- $value := last . -}}
{{- if and (kindIs "map" $value) $value }}
{{- range $key, $item := $value }}
{{- include "minicluster.flatten" (list (ternary $key (printf "%s.%s" $path $key) (empty $path)) $item) }}
{{- end }}
{{- else if and (kindIs "slice" $value) $value }}
{{- range $index, $item := $value }}
{{- include "minicluster.flatten" (list (printf "%s[%d]" $path $index) $item) }}
{{- end }}
{{- else if not (kindIs "invalid" $value) }}
{{- $text := kindIs "string" $value | ternary (toString $value) (toJson $value) }}
{{ $path | quote }}: {{ ternary $text (printf "sha256:%s" (sha256sum $text)) (le (len $text) 64) | quote }}
{{- end }}
{{- end }}

{{/* Number of hosts in the broker configuration. When maxSize is unset, a live cluster keeps its own. */}}
{{- define "minicluster.maxSize" -}}
{{- $installed := fromJson (include "minicluster.installedValues" .) -}}
{{- .Values.maxSize | default (get $installed "maxSize") | default .Values.size | int64 -}}
{{- end }}

{{/*
What the agent, a sidecar of the lead, may do: none (there is no agent), metrics, or autoscaling, which stands for all
that it needs a token for: pod.disruptionBudget too. A live cluster keeps the agent of its install. A group has none.
*/}}
{{- define "minicluster.agent" -}}
{{- $installed := fromJson (include "minicluster.installedValues" .) -}}
{{- if .group }}none
{{- else if $installed }}{{ get $installed "agent.does" | default "none" }}
{{- else }}{{ include "minicluster.requestedAgent" . }}
{{- end -}}
{{- end }}

{{/* What the agent of a new cluster does, by the values: none, metrics or autoscaling. */}}
{{- define "minicluster.requestedAgent" -}}
{{- if or .Values.autoscaling.enabled .Values.pod.disruptionBudget }}autoscaling{{ else if .Values.metrics.enabled }}metrics{{ else }}none{{ end -}}
{{- end }}

{{/* Fails if an upgrade asks for what a live cluster can't change. The post-renderer compares the values. */}}
{{- define "minicluster.refuseChange" -}}
{{- if ne (include "minicluster.installedValues" .) "{}" -}}
{{- include "minicluster.refuseLiveChange" . -}}
{{- else if .Release.IsUpgrade -}}
{{- include "minicluster.refuseNewJob" . -}}
{{- end -}}
{{- end }}

{{/* The end of an error message: what the user can do about an immutable value. */}}
{{- define "minicluster.anotherWay" -}}
uninstall {{ .Release.Name }} first, or install under another name
{{- end }}

{{/* Fails if an upgrade finds no Job of its name, where it would run finished work again, or mix groups of two clusters. */}}
{{- define "minicluster.refuseNewJob" -}}
{{- $root := . -}}
{{- $name := include "minicluster.name" . -}}
{{- range include "minicluster.groups" . | fromJsonArray }}
{{- $values := include "minicluster.groupValues" (list $root .) | fromJson }}
{{- $group := set (set (omit $root "Values") "Values" $values) "group" .name }}
{{- if ne (include "minicluster.installedValues" $group) "{}" }}
{{- $changes := include "minicluster.changes" $group | fromJson | keys | sortAlpha | join ", " }}
{{- if or $changes (ne (include "minicluster.liveVersion" $group) $root.Chart.Version) }}
{{- $why := $changes | default (printf "version %s of the chart" (include "minicluster.liveVersion" $group)) | trunc 200 }}
{{- fail (printf "the Job %s-%s is left of the former %s, whose values were others (%s): `kubectl delete job %s-%s`, then upgrade again" $name .name $name $why $name .name) }}
{{- end }}
{{- end }}
{{- end }}
{{- /* with cleanup, Kubernetes removes the Job when it has ended */ -}}
{{- $owner := dig "metadata" "annotations" "meta.helm.sh/release-name" "" (include "minicluster.liveConfigMap" . | fromJson) -}}
{{- if and .Values.cleanup (eq $owner .Release.Name) }}
{{- fail (printf "the Job of %s has ended and was cleaned up, and an upgrade would run its work again: uninstall %s first, or set cleanup to false" $name .Release.Name) }}
{{- end }}
{{- end }}

{{/*
The live Jobs of the release's MiniClusters, for the post-renderer (plugin/minicluster/render/renamed.py): an upgrade that
adds one MiniCluster and removes another may be a new name of one. As JSON in base64; "" for one that has a Job.
*/}}
{{- define "minicluster.others" -}}
{{- $jobs := list -}}
{{- if and .Release.IsUpgrade (eq (include "minicluster.lookup" (list . "batch/v1" "Job" (include "minicluster.name" .))) "{}") -}}
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

{{/* Fails if the live Job is being deleted, or if the upgrade turns on the agent or changes the certificate. */}}
{{- define "minicluster.refuseLiveChange" -}}
{{- $name := include "minicluster.name" . -}}
{{- $installed := fromJson (include "minicluster.installedValues" .) -}}
{{- $way := include "minicluster.anotherWay" . -}}
{{- if dig "metadata" "deletionTimestamp" "" (fromJson (include "minicluster.liveJob" .)) }}
{{- fail (printf "the Job %s is being deleted: wait until it is gone, then upgrade again" $name) }}
{{- end }}
{{- with include "minicluster.lackingAgent" . }}
{{- fail (printf "%s can't be turned on for the live MiniCluster %s, which was installed without it; %s" . $name $way) }}
{{- end }}
{{- if not (or .Values.flux.curveCertSecret (get $installed "flux.curveCertSecret")) }}
{{- $certificate := include "minicluster.liveCertificate" . }}
{{- if not $certificate }}
{{- fail (printf "the Secret %s-curve of the live MiniCluster %s is gone, and its brokers hold the old certificate: restore the Secret, or %s" $name $name $way) }}
{{- end }}
{{- if and .Values.flux.curveCert (ne (trim .Values.flux.curveCert) (trim $certificate)) }}
{{- fail (printf "flux.curveCert can't change on the live MiniCluster %s: its brokers hold another certificate; %s" $name $way) }}
{{- end }}
{{- end }}
{{- end }}
