{{/* Names, labels and default images. Each is made here only. */}}

{{/* The cluster's name. The post-renderer refuses what is not a name; no manifest breaks before it can. */}}
{{- define "minicluster.name" -}}
{{- regexReplaceAll "[^-.0-9A-Za-z]" (.Values.nameOverride | default .Release.Name) "-" -}}
{{- end }}

{{- define "minicluster.service" -}}
{{- .Values.network.headlessName | default (include "minicluster.name" .) -}}
{{- end }}

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

{{/* The runner, which is the container that runs Flux, as JSON. An only container needs no runFlux. */}}
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

{{- define "minicluster.runnerName" -}}
{{- (fromJson (include "minicluster.runner" .)).name | default (include "minicluster.name" .) -}}
{{- end }}

{{- define "minicluster.image" -}}
{{- .image | default "ubuntu:noble" -}}
{{- end }}

{{- define "minicluster.pullPolicy" -}}
{{- if .pullAlways }}Always{{ else }}{{ .imagePullPolicy | default "IfNotPresent" }}{{ end -}}
{{- end }}

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

{{/* A text in which Kubernetes doesn't expand $(NAME). */}}
{{- define "minicluster.literal" -}}
{{- replace "$" "$$" . -}}
{{- end }}

{{/* A NetworkPolicy rule by which everyone may connect to some ports; nothing without a port. */}}
{{- define "minicluster.openPorts" -}}
{{- with . -}}
- ports:
    {{- range . | uniq }}
    - {protocol: TCP, port: {{ int64 . }}}
    {{- end }}
{{- end }}
{{- end }}
