{{/*
The record of a Job: the immutable values that it was made with, in an annotation. All values are immutable but the
`mutableValues` of files/constants.json.
*/}}

{{/* The annotations by which a later upgrade knows what the Job was made with, as JSON. */}}
{{- define "minicluster.recorded" -}}
{{- $values := include "minicluster.keptValues" . -}}
{{- if or (eq $values "{}") (eq (include "minicluster.change" .) "place") }}{{ $values = include "minicluster.immutableValues" (list . (fromJson $values)) }}{{ end -}}
{{- dict "minicluster/immutable" $values "minicluster/version" (include "minicluster.keptVersion" . | default .Chart.Version) | toJson -}}
{{- end }}

{{/*
The immutable values of an upgrade as a flat map of path to text, as JSON. The post-renderer compares those of the install
with them (plugin/minicluster/render/upgrade.py). Arguments: root, the record of a Job that keeps its agent and its view.
*/}}
{{- define "minicluster.immutableValues" -}}
{{- $root := first . -}}
{{- $values := deepCopy $root.Values -}}
{{- range (include "minicluster.constants" $root | fromJson).mutableValues }}
{{- $path := splitList "." . }}{{ $map := $values }}
{{- range initial $path }}{{ $map = get $map . | default dict }}{{ end }}
{{- $_ := unset $map (last $path) }}
{{- end -}}
{{- range $values.containers }}{{ range .volumes }}{{ include "minicluster.immutableClaim" . }}{{ end }}{{ end -}}
{{- include "minicluster.immutableClaim" $values.state -}}
{{- /* one text: as paths, {gang: {}} and {basic: {}} would be the same */ -}}
{{- $_ := set $values.job "template" (toJson $values.job.template) -}}
{{- $_ := set $values.agent "does" (include "minicluster.agentOf" .) -}}
{{- if ne $values.agent.does "none" }}{{ $_ := set $values "metrics" (pick $root.Values.metrics "port") }}{{ end -}}
{{- $_ := set $values "maxSize" (include "minicluster.maxSize" $root) -}}
{{- $groups := list -}}
{{- range include "minicluster.groups" $root | fromJsonArray }}{{ $groups = append $groups (omit . "size" "minSize" "autoscaling") }}{{ end -}}
{{- $_ := set $values "groups" $groups -}}
{{- $_ := set $values.flux.container "mode" (include "minicluster.viewModeOf" .) -}}
{{- fromYaml (include "minicluster.flatten" (list "" $values)) | toJson -}}
{{- end }}

{{/*
Changes a volume in place, so that only its immutable part is recorded: that it has a claim of the release, but not the
claim's capacity or metadata.
*/}}
{{- define "minicluster.immutableClaim" -}}
{{- $volume := . -}}
{{- if .capacity }}{{ $_ := set $volume "capacity" "a claim of the release" }}{{ end -}}
{{- range list "labels" "annotations" "keep" }}{{ $_ := unset $volume . }}{{ end -}}
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
