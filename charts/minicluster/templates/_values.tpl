{{/*
A value as YAML. U+0085, U+2028 and U+2029 break lines to some readers and not to others, and so can end a text of
several lines, and toYaml makes a blank of the first: where one is, the value is JSON, in which they are escaped.
*/}}
{{- define "minicluster.yaml" -}}
{{- $json := toJson . -}}
{{- if regexMatch "\u0085|\\\\u202[89]" $json }}{{ replace "\u0085" "\\u0085" $json }}{{ else }}{{ toYaml . }}{{ end -}}
{{- end }}

{{/*
Gives the values that are not set their defaults. Helm drops what a user sets to null, and `--reuse-values` lacks what
is new in the chart; both mean unset. Each template that reads values begins with it.
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
