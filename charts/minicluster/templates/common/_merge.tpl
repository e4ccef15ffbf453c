{{/*
A value with a fragment, such as `pod.template`, merged over it, as JSON under the key `value`. Maps are merged by key
and lists of named items by name; the fragment replaces anything else. Arguments: value, fragment.
*/}}
{{- define "minicluster.merge" -}}
{{- $base := first . -}}{{- $over := last . -}}
{{- $result := dict "value" $over -}}
{{- if and (kindIs "map" $base) (kindIs "map" $over) }}
{{- $map := deepCopy $base }}
{{- range $key, $item := $over }}
{{- if hasKey $map $key }}{{ $item = (include "minicluster.merge" (list (get $map $key) $item) | fromJson).value }}{{ end }}
{{- $_ := set $map $key $item }}
{{- end }}
{{- $_ := set $result "value" $map }}
{{- else if and (kindIs "slice" $base) (kindIs "slice" $over) (include "minicluster.named" $base) (include "minicluster.named" $over) }}
{{- $list := list }}{{ $names := list }}
{{- range $item := $base }}
{{- $names = append $names $item.name }}
{{- range $over }}{{ if eq .name $item.name }}{{ $item = (include "minicluster.merge" (list $item .) | fromJson).value }}{{ end }}{{ end }}
{{- $list = append $list $item }}
{{- end }}
{{- range $over }}{{ if not (has .name $names) }}{{ $list = append $list . }}{{ end }}{{ end }}
{{- $_ := set $result "value" $list }}
{{- end }}
{{- toJson $result }}
{{- end }}

{{/* "true" when all items of a list are maps with a name, else "". */}}
{{- define "minicluster.named" -}}
{{- $named := true -}}
{{- range . }}{{ if not (and (kindIs "map" .) (hasKey . "name")) }}{{ $named = false }}{{ end }}{{ end -}}
{{- if $named }}true{{ end -}}
{{- end }}
