{{/* The Indexed Jobs: that of the cluster, and one for each group. */}}

{{/* Name of the Job, which is the first part of its pods' host names. */}}
{{- define "minicluster.jobName" -}}
{{- include "minicluster.name" . }}{{ with .group }}-{{ . }}{{ end -}}
{{- end }}

{{/*
Metadata and spec of an Indexed Job. Argument: the root, or for a group a root with the group's name and values (broker/group-job.yaml).
The post-renderer gives a Job that an upgrade keeps the immutable part of the live one (plugin/minicluster/render/revision.py).
*/}}
{{- define "minicluster.job" -}}
{{- include "minicluster.refuseKueueChange" . -}}
{{- include "minicluster.refuseGangChange" . -}}
metadata:
  name: {{ include "minicluster.jobName" . | quote }}
  namespace: {{ .Release.Namespace | quote }}
  labels: {{- merge (include "minicluster.labels" . | fromYaml) (include "minicluster.groupLabels" . | fromYaml) (include "minicluster.kueueLabels" . | fromYaml) .Values.jobLabels | include "minicluster.yaml" | nindent 4 }}
  annotations:
    # the immutable values, which `helm upgrade` refuses to change, and the chart whose programs the pods run
    {{- range $key, $text := include "minicluster.recorded" . | fromJson }}
    {{ $key }}: {{ $text | quote }}
    {{- end }}
    {{- if and .Values.suspend (or (not .group) .Values.size) }}
    # `minicluster status` shows who suspended the Job
    minicluster/suspended: the value suspend
    {{- end }}
    {{- if and .Values.schedules (not .group) }}
    # `minicluster list` shows the next time
    {{- $times := list }}
    {{- range .Values.schedules }}{{ $times = append $times (dict "name" .name "cron" .cron "timeZone" (.timeZone | default "Etc/UTC")) }}{{ end }}
    minicluster/schedules: {{ toJson $times | quote }}
    {{- end }}
    {{- range $key, $text := merge (include "minicluster.kueueAnnotations" . | fromYaml) .Values.jobAnnotations }}
    {{ $key | quote }}: {{ $text | quote }}
    {{- end }}
spec:
  completionMode: Indexed
  {{- with include "minicluster.jobFields" . }}
  {{- nindent 2 (trimPrefix "\n" .) }}
  {{- end }}
  {{- $counts := include "minicluster.counts" . | fromJson }}
  {{- if .Values.autoscaling.enabled }}
  # Completions and parallelism differ, so Kubernetes refuses a change of completions: no upgrade and no rollback changes
  # the size of a Job that the autoscaler has resized since its manifest was rendered.
  {{- end }}
  completions: {{ int64 $counts.completions }}
  parallelism: {{ int64 $counts.parallelism }}
  backoffLimit: {{ int64 .Values.backoffLimit }}
  {{- if eq (include "minicluster.supports" (list . "backoffLimitPerIndex")) "yes" }}
  # Kubernetes waits longer after each failure. With this field it counts failures by index, so that those of one
  # pod don't delay another. The limit is still backoffLimit.
  backoffLimitPerIndex: 2147483647
  {{- end }}
  activeDeadlineSeconds: {{ int64 .Values.deadlineSeconds }}
  {{- if $counts.suspend }}
  # never false: that would resume a Job that Kueue, or somebody else, suspended
  suspend: true
  {{- end }}
  {{- if .Values.cleanup }}
  ttlSecondsAfterFinished: 0
  {{- end }}
  {{- if and (not .group) (eq (include "minicluster.supports" (list . "successPolicy")) "yes") }}
  successPolicy:
    rules:
      - succeededIndexes: "0"
  {{- end }}
  podFailurePolicy:
    rules:
      # an evicted, preempted or drained pod is not a failure of the job
      - action: Ignore
        onPodConditions:
          - {type: DisruptionTarget, status: "True"}
      # Pods that were told to stop (85), or killed (137), or were on a Kubernetes node that restarted (255) are replaced.
      # Any other exit code is that of the job.
      - action: FailJob
        onExitCodes:
          containerName: {{ include "minicluster.runnerName" . | quote }}
          operator: NotIn
          values: [85, 137, 255]
      {{- if eq (include "minicluster.viewMode" .) "copy" }}
      # the image is not a Flux view
      - action: FailJob
        onExitCodes:
          containerName: {{ .Values.flux.container.name | quote }}
          operator: In
          values: [66]
      {{- end }}
  template:
    {{- $template := include "minicluster.podTemplate" . | fromYaml }}
    {{- (include "minicluster.merge" (list $template .Values.pod.template) | fromJson).value | include "minicluster.yaml" | nindent 4 }}
{{- end }}

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
