{{/* Names, labels and default images. Each is made here only. */}}

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

{{/* Labels that every object of this cluster has. */}}
{{- define "minicluster.selector" -}}
app.kubernetes.io/name: minicluster
app.kubernetes.io/instance: {{ include "minicluster.name" . | quote }}
{{- end }}

{{/* The label of all pods that have a host name in the cluster's domain: brokers and services. */}}
{{- define "minicluster.hostSelector" -}}
minicluster/domain: {{ include "minicluster.service" . | quote }}
{{- end }}

{{/* Labels that select this cluster's brokers; stable for its life. */}}
{{- define "minicluster.brokerSelector" -}}
{{ include "minicluster.selector" . }}
app.kubernetes.io/component: broker
{{- end }}

{{/* Labels that select the pod of the services. */}}
{{- define "minicluster.servicesSelector" -}}
{{ include "minicluster.selector" . }}
app.kubernetes.io/component: services
{{- end }}

{{/* Labels of every object; never in the pod template, which must not change with the chart's version. */}}
{{- define "minicluster.labels" -}}
{{ include "minicluster.selector" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* The runner, which is the container that runs Flux, as JSON. A single container needs no runFlux. */}}
{{- define "minicluster.runner" -}}
{{- $runner := first .Values.containers -}}
{{- range .Values.containers }}{{ if .runFlux }}{{ $runner = . }}{{ end }}{{ end -}}
{{- $runner | toJson -}}
{{- end }}

{{/* The other containers of the brokers' pods, as JSON. */}}
{{- define "minicluster.sidecars" -}}
{{- $sidecars := list -}}
{{- if gt (len .Values.containers) 1 }}{{ range .Values.containers }}{{ if not .runFlux }}{{ $sidecars = append $sidecars . }}{{ end }}{{ end }}{{ end -}}
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

{{/* Name of the service account that the agent uses. */}}
{{- define "minicluster.agentAccount" -}}
{{- .Values.pod.serviceAccountName | default (printf "%s-agent" (include "minicluster.name" .)) -}}
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
