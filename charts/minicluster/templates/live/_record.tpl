{{/*
The record of a Job: the immutable values that it was made with, in an annotation. All values are immutable but the
`mutableValues` of files/constants.json.
*/}}

{{/* The annotations by which a later upgrade knows what the Job was made with, as JSON. */}}
{{- define "minicluster.recorded" -}}
{{- $installed := include "minicluster.installedValues" . -}}
{{- $new := or (eq $installed "{}") (eq .change "place") -}}
{{- $values := $new | ternary (include "minicluster.immutableValues" .) $installed -}}
{{- dict "minicluster/immutable" $values "minicluster/version" (include "minicluster.liveVersion" . | default .Chart.Version) | toJson -}}
{{- end }}

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
