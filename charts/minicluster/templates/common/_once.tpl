{{/*
What many templates ask is computed once per render, and kept in the root: Helm gives all templates of a chart the same one.
No value depends on which template asks first. Arguments: root, name of a helper that takes the root.
*/}}
{{- define "minicluster.once" -}}
{{- $root := first . -}}{{- $helper := last . -}}
{{- if not (hasKey $root "once") }}{{ $_ := set $root "once" dict }}{{ end -}}
{{- if not (hasKey $root.once $helper) }}{{ $_ := set $root.once $helper (include $helper $root) }}{{ end -}}
{{- get $root.once $helper -}}
{{- end }}
