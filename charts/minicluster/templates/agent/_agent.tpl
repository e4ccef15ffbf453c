{{/* The agent, a sidecar of the lead: what it may do, its account, its container. */}}

{{/*
What the agent, a sidecar of the lead, may do: none (there is no agent), metrics, or autoscaling, which stands for all
that it needs a token for: pod.disruptionBudget too. A live cluster keeps the agent of its install. A group has none.
*/}}
{{- define "minicluster.agent" -}}
{{- $installed := fromJson (include "minicluster.installedValues" .) -}}
{{- if .group }}none
{{- else if $installed }}{{ get $installed "agent.does" | default "none" }}
{{- else }}{{ include "minicluster.requestedAgent" . }}
{{- end -}}
{{- end }}

{{/* What the agent of a new cluster does, by the values: none, metrics or autoscaling. */}}
{{- define "minicluster.requestedAgent" -}}
{{- if or .Values.autoscaling.enabled .Values.pod.disruptionBudget }}autoscaling{{ else if .Values.metrics.enabled }}metrics{{ else }}none{{ end -}}
{{- end }}

{{/* The first value that needs an agent which the live cluster does not have; "" for none. */}}
{{- define "minicluster.lackingAgent" -}}
{{- $agent := include "minicluster.agent" . -}}
{{- if and .Values.autoscaling.enabled (ne $agent "autoscaling") }}autoscaling.enabled
{{- else if and .Values.metrics.enabled (eq $agent "none") }}metrics.enabled
{{- end -}}
{{- end }}

{{/* Name of the service account that the agent uses. */}}
{{- define "minicluster.agentAccount" -}}
{{- .Values.pod.serviceAccountName | default (printf "%s-agent" (include "minicluster.name" .)) -}}
{{- end }}

{{/*
The agent's container as JSON, with the fields of a container of the values. It runs as the runner's user, who owns the
broker's socket.
*/}}
{{- define "minicluster.agentContainer" -}}
{{- $runner := fromJson (include "minicluster.runner" .) -}}
{{- $agent := pick $runner "image" "imagePullPolicy" "pullAlways" -}}
{{- $_ := set $agent "name" "minicluster-agent" -}}
{{- $_ := set $agent "ports" (list .Values.metrics.port) -}}
{{- $_ := set $agent "resources" .Values.agent.resources -}}
{{- $_ := set $agent "securityContext" (omit ($runner.securityContext | default dict) "privileged" "capabilities") -}}
{{- if dig "securityContext" "capabilities" "drop" list $runner }}
{{- $_ := set $agent.securityContext "capabilities" (pick $runner.securityContext.capabilities "drop") -}}
{{- end }}
{{- toJson $agent -}}
{{- end }}
