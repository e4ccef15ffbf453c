{{/*
A value as YAML. U+0085, U+2028 and U+2029 break lines to some readers and not to others, and so can end a text of
several lines, and toYaml makes a blank of the first: where one is, the value is JSON, in which they are escaped.
*/}}
{{- define "minicluster.yaml" -}}
{{- $json := toJson . -}}
{{- if regexMatch "\u0085|\\\\u202[89]" $json }}{{ replace "\u0085" "\\u0085" $json }}{{ else }}{{ toYaml . }}{{ end -}}
{{- end }}
