{{/* Devices: the resource claims of the brokers' pods, and what Flux doesn't count as GPUs. */}}

{{/* Name of the ResourceClaimTemplate that the release makes. Arguments: root, claim of the values. */}}
{{- define "minicluster.claimTemplate" -}}
{{- printf "%s-%s" (include "minicluster.name" (first .)) (last .).name -}}
{{- end }}

{{/* The claims of the brokers' pods; nothing for none. */}}
{{- define "minicluster.resourceClaims" -}}
{{- range $claim := .Values.pod.resourceClaims }}
- name: {{ $claim.name | quote }}
  {{- if hasKey $claim "spec" }}
  resourceClaimTemplateName: {{ include "minicluster.claimTemplate" (list $ $claim) | quote }}
  {{- end }}
  {{- range $field := list "resourceClaimName" "resourceClaimTemplateName" }}
  {{- with get $claim $field }}
  {{ $field }}: {{ . | quote }}
  {{- end }}
  {{- end }}
{{- end }}
{{- end }}

{{/*
The spec of a claim as an API version has it: before v1beta2 the fields of `exactly` are those of the request itself.
Arguments: API version, spec.
*/}}
{{- define "minicluster.claimSpec" -}}
{{- $spec := deepCopy (last .) -}}
{{- if eq (first .) "v1beta1" }}
{{- $requests := list }}
{{- range dig "devices" "requests" list $spec }}{{ $requests = append $requests (merge (omit . "exactly") (.exactly | default dict)) }}{{ end }}
{{- if $requests }}{{ $_ := set $spec.devices "requests" $requests }}{{ end }}
{{- end }}
{{- toJson $spec -}}
{{- end }}

{{/* "true" when one of some patterns, in which * is any text, matches a name. Arguments: name, patterns. */}}
{{- define "minicluster.matches" -}}
{{- $name := first . -}}{{- $found := false -}}
{{- range last . }}{{ if regexMatch (printf "^%s$" (regexQuoteMeta . | replace "\\*" ".*")) $name }}{{ $found = true }}{{ end }}{{ end -}}
{{- $found -}}
{{- end }}

{{/*
A sentence for each device of the runner that Flux doesn't count, as JSON. The post-renderer has the same ones
(`uncounted` in plugin/minicluster/render/devices.py).
*/}}
{{- define "minicluster.uncountedDevices" -}}
{{- $runner := fromJson (include "minicluster.runner" .) -}}
{{- $place := printf "containers[%s]" (include "minicluster.runnerPlace" .) -}}
{{- $way := printf "set %s.gpus to the number that jobs may ask for, 0 for none" $place -}}
{{- $found := list -}}
{{- if kindIs "invalid" $runner.gpus }}
{{- $constants := include "minicluster.constants" . | fromJson }}
{{- $known := $constants.noGpus }}
{{- range $constants.gpus }}{{ $known = concat $known .resources }}{{ end }}
{{- range $name, $_ := dig "resources" "limits" dict $runner }}
{{- if and (contains "/" $name) (ne (include "minicluster.matches" (list $name $known)) "true") }}
{{- $found = append $found (printf "%s.resources.limits.%s looks like a device, and Flux doesn't know it: %s" $place $name $way) }}
{{- end }}
{{- end }}
{{- range dig "resources" "claims" list $runner }}
{{- $found = append $found (printf "%s.resources.claims: Flux doesn't know how many devices %s has: %s" $place .name $way) }}
{{- end }}
{{- end }}
{{- toJson (uniq $found) -}}
{{- end }}
