{{/* How the chart writes a value as YAML, which defaults unset values have, and the constants. */}}

{{/*
A value as YAML. Some readers take U+0085, U+2028 and U+2029 as line breaks, which can end a text of several lines, and of
control characters toYaml makes nothing at all. A value that contains one is written as JSON with escapes in their place.
*/}}
{{- define "minicluster.yaml" -}}
{{- $json := toJson . -}}
{{- if regexMatch "[\u007f-\u009f\ufffe\uffff]|\\\\u202[89]" $json -}}
{{- /* %+q escapes all that is not ASCII, and the quotes and backslashes of JSON, which are undone */ -}}
{{- printf "%+q" $json | trimPrefix "\"" | trimSuffix "\"" | replace "\\\"" "\"" | replace "\\\\" "\\" -}}
{{- else }}{{ toYaml . }}{{ end -}}
{{- end }}

{{/*
Gives unset values their defaults. Helm drops what a user sets to null, and `--reuse-values` lacks the fields that are
new in the chart; both mean unset. Each template that makes an object begins with this one.
*/}}
{{- define "minicluster.defaults" -}}
{{- include "minicluster.fill" (list .Values (.Files.Get "files/defaults.json" | fromJson)) -}}
{{- end }}

{{/* What templates and post-renderer share (plugin/minicluster/render/constants.py), as JSON. */}}
{{- define "minicluster.constants" -}}
{{- .Files.Get "files/constants.json" -}}
{{- end }}

{{/* The port on which brokers listen. */}}
{{- define "minicluster.brokerPort" -}}
{{- (include "minicluster.constants" . | fromJson).brokerPort | int64 -}}
{{- end }}

{{- define "minicluster.fill" -}}
{{- $values := first . -}}
{{- range $key, $default := last . }}
{{- $value := get $values $key }}
{{- if or (not (hasKey $values $key)) (kindIs "invalid" $value) }}{{ $_ := set $values $key $default }}
{{- else if and (kindIs "map" $value) (kindIs "map" $default) }}{{ include "minicluster.fill" (list $value $default) }}
{{- end }}
{{- end }}
{{- end }}
