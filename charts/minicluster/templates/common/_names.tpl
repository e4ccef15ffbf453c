{{/* Names, images and default images. Each is made here only. */}}

{{/*
The cluster's name. A character that no name has becomes "-", so the manifests are still valid when the post-renderer
refuses the name.
*/}}
{{- define "minicluster.name" -}}
{{- regexReplaceAll "[^-.0-9A-Za-z]" (.Values.nameOverride | default .Release.Name) "-" -}}
{{- end }}

{{/* Name of the headless Service, which is also the brokers' subdomain. */}}
{{- define "minicluster.service" -}}
{{- .Values.network.headlessName | default (include "minicluster.name" .) -}}
{{- end }}

{{/*
The place of the runner in containers: the only container, or the one with `runFlux: true`; where none has it, the only
one that doesn't say `runFlux: false`. The post-renderer has the same rule (may_run_flux in
plugin/minicluster/render/model.py), and refuses several runners and none.
*/}}
{{- define "minicluster.runnerPlace" -}}
{{- $marked := list -}}{{- $open := list -}}
{{- range $place, $container := .Values.containers -}}
{{- if $container.runFlux }}{{ $marked = append $marked $place }}
{{- else if not (kindIs "bool" $container.runFlux) }}{{ $open = append $open $place }}
{{- end -}}
{{- end -}}
{{- first (concat $marked $open (list 0)) -}}
{{- end }}

{{/* The runner, which is the container that runs Flux, as JSON. */}}
{{- define "minicluster.runner" -}}
{{- index .Values.containers (include "minicluster.runnerPlace" . | int) | toJson -}}
{{- end }}

{{/* The other containers of the brokers' pods, as JSON. */}}
{{- define "minicluster.sidecars" -}}
{{- $runner := include "minicluster.runnerPlace" . | int -}}
{{- $sidecars := list -}}
{{- range $place, $container := .Values.containers }}{{ if ne $place $runner }}{{ $sidecars = append $sidecars $container }}{{ end }}{{ end -}}
{{- toJson $sidecars -}}
{{- end }}

{{/* Name of the runner. */}}
{{- define "minicluster.runnerName" -}}
{{- (fromJson (include "minicluster.runner" .)).name | default (include "minicluster.name" .) -}}
{{- end }}

{{/* Image of a container of the values. */}}
{{- define "minicluster.image" -}}
{{- .image | default "ubuntu:noble" -}}
{{- end }}

{{/* Pull policy of a container of the values, or of the view. */}}
{{- define "minicluster.pullPolicy" -}}
{{- if .pullAlways }}Always{{ else }}{{ .imagePullPolicy | default "IfNotPresent" }}{{ end -}}
{{- end }}

{{/* Image of the Flux view: that of the values, else the default for flux.arch. */}}
{{- define "minicluster.viewImage" -}}
{{- $arm := eq .Values.flux.arch "arm" -}}
{{- .Values.flux.container.image | default (printf "ghcr.io/converged-computing/flux-view-ubuntu:%s" (ternary "arm-jammy" "tag-noble" $arm)) -}}
{{- end }}

{{/* Name of the Secret with the certificate. */}}
{{- define "minicluster.curveSecret" -}}
{{- .Values.flux.curveCertSecret | default (printf "%s-curve" (include "minicluster.name" .)) -}}
{{- end }}

{{/* A text with each $ doubled, so that Kubernetes doesn't expand $(NAME) in it. */}}
{{- define "minicluster.literal" -}}
{{- replace "$" "$$" . -}}
{{- end }}

{{/* A NetworkPolicy rule that lets everyone connect to a list of ports; nothing for an empty list. */}}
{{- define "minicluster.openPorts" -}}
{{- with . -}}
- ports:
    {{- range . | uniq }}
    - {protocol: TCP, port: {{ int64 . }}}
    {{- end }}
{{- end }}
{{- end }}
