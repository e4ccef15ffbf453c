{{/*
The hooks of `upgrade.replace`: which Jobs they remove, when they run, and the pods in which files/replace_jobs.py runs.
*/}}

{{/* The names of the Jobs that a replacement removes, as a JSON list: also those of groups that the values drop. */}}
{{- define "minicluster.replacedJobs" -}}
{{- $names := include "minicluster.jobNames" . | fromJsonArray -}}
{{- $name := include "minicluster.name" . -}}
{{- range $path, $text := include "minicluster.foundValues" . | fromJson -}}
{{- if regexMatch "^groups\\[[0-9]+\\]\\.name$" $path }}{{ $names = append $names (printf "%s-%s" $name $text) }}{{ end -}}
{{- end -}}
{{- uniq $names | toJson -}}
{{- end }}

{{/* The input of files/replace_jobs.py, as JSON. */}}
{{- define "minicluster.wantedJobs" -}}
{{- $root := . -}}
{{- $jobs := dict -}}
{{- range include "minicluster.replacedJobs" . | fromJsonArray }}{{ $_ := set $jobs . nil }}{{ end -}}
{{- $_ := set $jobs (include "minicluster.name" .) (include "minicluster.recorded" . | fromJson) -}}
{{- $made := list (include "minicluster.madeJob" . | fromJson) -}}
{{- range include "minicluster.groups" . | fromJsonArray -}}
{{- $values := include "minicluster.groupValues" (list $root .) | fromJson -}}
{{- $group := set (set (set (omit $root "Values") "Values" $values) "group" .name) "cluster" $root -}}
{{- $_ := set $jobs (include "minicluster.jobName" $group) (include "minicluster.recorded" $group | fromJson) -}}
{{- $made = append $made (include "minicluster.madeJob" $group | fromJson) -}}
{{- end -}}
{{- dict "name" (include "minicluster.name" .) "jobs" $jobs "made" $made "open" (include "minicluster.constants" . | fromJson).openRefusals | toJson -}}
{{- end }}

{{/* The manifest of a Job, as JSON. */}}
{{- define "minicluster.madeJob" -}}
{{- merge (dict "apiVersion" "batch/v1" "kind" "Job") (include "minicluster.job" . | fromYaml) | toJson -}}
{{- end }}

{{/*
Annotations of a hook. What follows is checked, and then Jobs are removed, before an upgrade that makes them anew, and before one that does not know the live
Jobs (GitOps); before a rollback always, because that renders nothing. Arguments: root, weight, kind: check, remove, wait or all.
*/}}
{{- define "minicluster.replaceHook" -}}
{{- $root := index . 0 -}}{{- $kind := index . 2 -}}
{{- $replaces := eq (include "minicluster.change" $root) "replace" -}}
{{- $knows := ne (include "minicluster.keptValues" $root) "{}" -}}
{{- $remove := ternary list (list (ternary "pre-rollback" "pre-upgrade,pre-rollback" $knows)) (eq $kind "wait") -}}
{{- $wait := ternary (list "post-upgrade") list (and $replaces (has $kind (list "wait" "all"))) -}}
helm.sh/hook: {{ concat $remove $wait | join "," }}
helm.sh/hook-weight: {{ index . 1 | quote }}
# Helm doesn't remove hooks with the release
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded,hook-failed
# what became of running jobs is said also when all is well
helm.sh/hook-output-log-policy: {{ ternary "hook-succeeded,hook-failed" "hook-failed" (eq $kind "remove") }}
{{- end }}

{{/* Metadata and spec of a pod in which the program runs. Arguments: root, action. */}}
{{- define "minicluster.replacer" -}}
{{- $root := first . -}}{{- $action := last . -}}
{{- $name := include "minicluster.name" $root -}}
metadata:
  name: "{{ $name | trunc 48 }}-replace-{{ $action }}"
  {{- include "minicluster.podMetadata" (list $root "replace" (include "minicluster.replaceHook" (list $root (ternary "1" "0" (eq $action "remove")) $action))) | nindent 2 }}
spec:
  restartPolicy: Never
  {{- if eq $action "check" }}
  # ends this pod beside a container that never ends, before Helm's own limit of 5 minutes: Helm then prints the log
  activeDeadlineSeconds: 240
  {{- end }}
  {{- include "minicluster.programPod" (list $root "replace" (list "/minicluster/replace_jobs.py" $action "/minicluster/jobs.json")) | nindent 2 }}
{{- end }}
