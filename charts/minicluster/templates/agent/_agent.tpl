{{/* The agent, a sidecar of the lead: what it may do, its account, its container. */}}

{{/* What the agent does (agentOf): a Job that an upgrade keeps has the agent of its install. */}}
{{- define "minicluster.agent" -}}
{{- include "minicluster.agentOf" (list . (include "minicluster.keptValues" . | fromJson)) -}}
{{- end }}

{{/*
What the agent may do: none (there is no agent), metrics, or autoscaling, which stands for all that it needs a token for:
pod.disruptionBudget too. A group has none. Arguments: root, the record of the Job that has the agent; empty for a new one.
*/}}
{{- define "minicluster.agentOf" -}}
{{- $values := (first .).Values -}}{{- $record := last . -}}
{{- if (first .).group }}none
{{- else if $record }}{{ get $record "agent.does" | default "none" }}
{{- else if or $values.autoscaling.enabled $values.pod.disruptionBudget }}autoscaling
{{- else if $values.metrics.enabled }}metrics
{{- else }}none
{{- end -}}
{{- end }}

{{/* The first value that needs an agent which the live cluster does not have; "" for none. */}}
{{- define "minicluster.lackingAgent" -}}
{{- $agent := include "minicluster.agentOf" (list . (include "minicluster.foundValues" . | fromJson)) -}}
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
{{- $_ := set $agent "securityContext" (omit (include "minicluster.plainContext" $runner | fromJson) "capabilities") -}}
{{- if dig "securityContext" "capabilities" "drop" list $runner }}
{{- $_ := set $agent.securityContext "capabilities" (pick $runner.securityContext.capabilities "drop") -}}
{{- end }}
{{- toJson $agent -}}
{{- end }}
