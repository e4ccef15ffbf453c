{{/* How many pods a Job has, and how many hosts the brokers know. */}}

{{/*
The fields `completions`, `parallelism` and `suspend` of the Job, as JSON, from `size`. With autoscaling a live Job keeps its
size, and Kubernetes refuses a manifest of another one.
*/}}
{{- define "minicluster.counts" -}}
{{- $size := int64 .Values.size -}}
{{- $live := dig "spec" dict (fromJson (include "minicluster.keptJob" .)) -}}
{{- $queued := eq (include "minicluster.isQueued" .) "true" -}}
{{- /* as Kubernetes has no Job of 0 completions that has not ended, that of a group without pods is suspended */ -}}
{{- $counts := dict "completions" (max 1 $size) "parallelism" (max 1 $size) "suspend" (or .Values.suspend (and (eq $size 0) (not $queued))) -}}
{{- if and $queued (eq $size 0) -}}
{{- /* Kueue would resume it, so it has no parallelism; completions can't change without it */ -}}
{{- $counts = dict "completions" ($live.completions | default 1) "parallelism" 0 "suspend" false -}}
{{- end -}}
{{- if .Values.autoscaling.enabled -}}
{{- $beyond := add1 .Values.maxSize -}}
{{- if not $live -}}
{{- /* parallelism is not completions: Kubernetes then refuses to change completions, and one more starts no more pods */ -}}
{{- $counts = ternary (dict "completions" $beyond "parallelism" 0) (dict "completions" $size "parallelism" (add1 $size)) (eq $size 0) -}}
{{- else if and .group (dig "suspend" false $live) (not .Values.suspend) (not $queued) -}}
{{- /* a group that was empty before its autoscaling: the agent does the rest */ -}}
{{- $counts = dict "completions" $beyond "parallelism" $beyond "suspend" true -}}
{{- else -}}
{{- $completions := int64 $live.completions -}}
{{- $counts = dict "completions" $completions "parallelism" (ternary 0 (add1 $completions) (eq (int64 $live.parallelism) 0)) -}}
{{- end -}}
{{- $_ := set $counts "suspend" (or .Values.suspend $counts.suspend) -}}
{{- end -}}
{{- toJson $counts -}}
{{- end }}

{{/* The `completions` of the Job. */}}
{{- define "minicluster.completions" -}}
{{- (include "minicluster.counts" . | fromJson).completions | int64 -}}
{{- end }}

{{/* Number of hosts in the broker configuration. When maxSize is unset, a live cluster keeps its own. */}}
{{- define "minicluster.maxSize" -}}
{{- $found := fromJson (include "minicluster.foundValues" .) -}}
{{- .Values.maxSize | default (get $found "maxSize") | default .Values.size | int64 -}}
{{- end }}
