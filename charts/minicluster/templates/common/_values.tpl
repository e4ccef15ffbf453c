{{/* How the chart writes a value as YAML, which defaults unset values have, and the constants. */}}

{{/*
A value as YAML. Some readers take U+0085, U+2028 and U+2029 for line breaks, which can end a text of several lines, and
toYaml returns nothing for a control character. A value with one of these is written as JSON with escapes.
*/}}
{{- define "minicluster.yaml" -}}
{{- $json := toJson . -}}
{{- if regexMatch "[\u007f-\u009f\ufffe\uffff]|\\\\u202[89]" $json -}}
{{- /* %+q escapes what is not ASCII; it also escapes JSON's quotes and backslashes, which is undone here */ -}}
{{- printf "%+q" $json | trimPrefix "\"" | trimSuffix "\"" | replace "\\\"" "\"" | replace "\\\\" "\\" -}}
{{- else }}{{ toYaml . }}{{ end -}}
{{- end }}

{{/*
Sets the defaults of unset values, in place. Helm drops a value that the user sets to null, and `--reuse-values` lacks
the fields that a newer chart adds. Each template of an object calls this first, and renders nothing without `enabled`, by
which a parent chart leaves this one out. The first call does it for all: it is the slowest part of a render.
*/}}
{{- define "minicluster.defaults" -}}
{{- include "minicluster.once" (list . "minicluster.setDefaults") -}}
{{- end }}

{{- define "minicluster.setDefaults" -}}
{{- include "minicluster.fill" (list .Values (.Files.Get "files/defaults.json" | fromJson)) -}}
{{- if ne (toString .Values.enabled) "false" }}{{ $_ := set .Values "enabled" true }}{{ end -}}
{{- with dig "imageRegistry" "" (.Values.global | default dict) }}{{ include "minicluster.mirror" (list $ (trimSuffix "/" .)) }}{{ end -}}
{{- end }}

{{/*
Lets all images come from `global.imageRegistry`, in place: so the record of the Job has them, too. A default image becomes
a value. Arguments: root, registry.
*/}}
{{- define "minicluster.mirror" -}}
{{- $values := (first .).Values -}}{{- $registry := last . -}}
{{- if not (regexMatch "^[A-Za-z0-9][-A-Za-z0-9.]*(:[0-9]+)?(/[-._a-z0-9]+)*$" $registry) }}
{{- fail (printf "global.imageRegistry is %q: name a host without https://, such as registry.example.com:5000/mirror" $registry) }}
{{- end -}}
{{- $view := $values.flux.container -}}
{{- if not $view.disable }}{{ $_ := set $view "image" (include "minicluster.viewImage" (first .)) }}{{ end -}}
{{- $holders := concat (list $view $values.flux.bursting.follow) $values.groups -}}
{{- range $container := concat $values.containers $values.services }}
{{- $_ := set $container "image" (include "minicluster.image" $container) }}
{{- range append (values (.volumes | default dict)) . }}{{ $holders = append $holders . }}{{ end }}
{{- end -}}
{{- range append $values.groups $values }}
{{- $spec := dig "template" "spec" dict (.pod | default dict) }}
{{- range list "containers" "initContainers" "volumes" }}{{ range get $spec . | default list }}{{ $holders = append $holders . }}{{ end }}{{ end }}
{{- end -}}
{{- range $holders }}
{{- $map := ternary .image . (kindIs "map" .image) }}{{- $key := ternary "reference" "image" (kindIs "map" .image) }}
{{- with get $map $key }}{{ $_ := set $map $key (include "minicluster.fromRegistry" (list $registry .)) }}{{ end }}
{{- end -}}
{{- end }}

{{/*
An image with a registry in place of its own, which is the part before the first / that has a . or a : or is localhost.
Docker Hub's images without a folder are in `library`. Arguments: registry, image.
*/}}
{{- define "minicluster.fromRegistry" -}}
{{- $registry := first . -}}{{- $image := last . -}}
{{- if hasPrefix (print $registry "/") $image }}{{ $image }}
{{- else }}
{{- $own := regexFind "^([^/]*[.:][^/]*|localhost)/" $image -}}
{{- $path := trimPrefix $own $image -}}
{{- $hub := and (has $own (list "" "docker.io/" "index.docker.io/")) (not (contains "/" $path)) -}}
{{- printf "%s/%s%s" $registry (ternary "library/" "" $hub) $path -}}
{{- end }}
{{- end }}

{{/* The constants that templates and post-renderer share (plugin/minicluster/render/constants.py), as JSON. */}}
{{- define "minicluster.constants" -}}
{{- .Files.Get "files/constants.json" -}}
{{- end }}

{{/* The port on which brokers listen. */}}
{{- define "minicluster.brokerPort" -}}
{{- (include "minicluster.constants" . | fromJson).brokerPort | int64 -}}
{{- end }}

{{/* Sets the missing keys of a map to their defaults, in place, at all levels. Arguments: map, defaults. */}}
{{- define "minicluster.fill" -}}
{{- $values := first . -}}
{{- range $key, $default := last . }}
{{- $value := get $values $key }}
{{- if or (not (hasKey $values $key)) (kindIs "invalid" $value) }}{{ $_ := set $values $key $default }}
{{- else if and (kindIs "map" $value) (kindIs "map" $default) }}{{ include "minicluster.fill" (list $value $default) }}
{{- end }}
{{- end }}
{{- end }}
