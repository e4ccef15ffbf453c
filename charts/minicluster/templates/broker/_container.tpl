{{/*
The manifest of one container of the values. Arguments: root, container, kind (runner, sidecar, agent or service).
The chart's shell programs start the runner and each container with a command; others run their image's entrypoint.
*/}}
{{- define "minicluster.container" -}}
{{- $root := .root -}}{{- $c := .container -}}{{- $kind := .kind -}}
{{- $home := $root.Values.flux.container.mountPath -}}
{{- $wrapped := eq (include "minicluster.wrapped" .) "true" -}}
name: {{ $c.name | default (include "minicluster.name" $root) | quote }}
image: {{ include "minicluster.image" $c | quote }}
imagePullPolicy: {{ include "minicluster.pullPolicy" $c }}
{{- if eq $kind "runner" }}
command: [/bin/sh, {{ printf "%s/configmap/start.sh" $home | quote }}, entrypoint.sh]
{{- else if $wrapped }}
{{- $role := $c.leadOnly | default false | ternary "lead" $kind }}
{{- $program := eq $kind "service" | ternary (list "minicluster/container.sh") (list "configmap/start.sh" "container.sh") }}
command: [/bin/sh, {{ printf "%s/%s" $home (first $program) | quote }}, {{ range rest $program }}{{ . }}, {{ end }}{{ $c.name | quote }}, {{ $role }}]
{{- end }}
{{- if or (eq $kind "sidecar") (eq $kind "agent") }}
# makes the container a sidecar: it ends with the runner, and its own end doesn't end the pod
restartPolicy: Always
{{- end }}
{{- if and (eq $kind "runner") (eq (include "minicluster.supports" (list $root "restartRules")) "yes") }}
restartPolicy: Never
restartPolicyRules:
  # one that was killed, most often for want of memory, comes back in its pod, whose volumes have the queue
  - action: Restart
    exitCodes: {operator: In, values: [137]}
{{- end }}
{{- range $field := list "workingDir" "resources" "securityContext" }}
{{- with get $c $field }}
{{ $field }}: {{- include "minicluster.yaml" . | nindent 2 }}
{{- end }}
{{- end }}
{{- $ports := $c.ports | default list }}
{{- $brokerPort := include "minicluster.brokerPort" $root | float64 }}
{{- if and (eq $kind "runner") $root.Values.pod.hostNetwork (not (has $brokerPort $ports)) }}
{{- /* so the scheduler never places two brokers on one Kubernetes node, not even of two MiniClusters */}}
{{- $ports = append $ports $brokerPort }}
{{- end }}
{{- with $ports }}
ports:
  {{- range . }}
  - {name: port-{{ int64 . }}, containerPort: {{ int64 . }}}
  {{- end }}
{{- end }}
env:
  - name: MINICLUSTER_HOME
    value: {{ $home | quote }}
  {{- with $root.group }}
  - name: MINICLUSTER_GROUP
    value: {{ . | quote }}
  {{- end }}
  {{- if eq $kind "runner" }}
  {{- /* a tool that changes names after the rendering changes none in the configuration */}}
  {{- range $name, $path := dict "JOB" "metadata.labels['batch.kubernetes.io/job-name']" "NAMESPACE" "metadata.namespace" }}
  - name: MINICLUSTER_{{ $name }}
    valueFrom:
      fieldRef: {fieldPath: {{ $path | quote }}}
  {{- end }}
  {{- end }}
  {{- if and (eq $kind "runner") (not $root.group) }}
  {{- /* how many pods of the index were there before; Kubernetes sets one of them with backoffLimitPerIndex */}}
  {{- range $name, $key := dict "FAILURES" "job-index-failure-count" "IGNORED_FAILURES" "job-index-ignored-failure-count" }}
  - name: MINICLUSTER_{{ $name }}
    valueFrom:
      fieldRef: {fieldPath: "metadata.annotations['batch.kubernetes.io/{{ $key }}']"}
  {{- end }}
  {{- end }}
  {{- if and (eq $kind "runner") $root.Values.flux.locations }}
  {{- range $name, $path := dict "NODE" "spec.nodeName" "ZONE" "metadata.labels['topology.kubernetes.io/zone']" "REGION" "metadata.labels['topology.kubernetes.io/region']" }}
  - name: MINICLUSTER_{{ $name }}
    valueFrom:
      fieldRef: {fieldPath: {{ $path | quote }}}
  {{- end }}
  {{- end }}
  {{- range $name, $value := $c.environment }}
  - name: {{ $name | quote }}
    value: {{ include "minicluster.literal" $value | quote }}
  {{- end }}
  {{- range $name, $secret := $c.secrets }}
  - name: {{ $name | quote }}
    valueFrom:
      secretKeyRef: {name: {{ $secret.name | quote }}, key: {{ $secret.key | quote }}}
  {{- end }}
{{- with include "minicluster.hooks" . | fromYaml }}
lifecycle: {{- include "minicluster.yaml" . | nindent 2 }}
{{- end }}
{{- if eq $kind "runner" }}
startupProbe:
  exec:
    command: [/bin/sh, {{ printf "%s/configmap/ready.sh" $home | quote }}]
  # a probe costs a third of a broker's start: none runs while the Kubernetes node starts its pods
  initialDelaySeconds: 3
  periodSeconds: 1
  # one probe polls for 50 s, in the container
  timeoutSeconds: 60
  # a broker waits for the others without a limit: the probe must never end it
  failureThreshold: 2147483647
{{- end }}
{{- include "minicluster.mounts" . }}
{{- end }}

{{/* "true" when the chart's shell programs start a container. Arguments: container, kind. */}}
{{- define "minicluster.wrapped" -}}
{{- $commands := .container.commands | default dict -}}
{{- or (eq .kind "runner") (eq .kind "agent") (and (not .container.noWrapEntrypoint) (or (not (empty .container.command)) (not (empty $commands.script)))) -}}
{{- end }}
