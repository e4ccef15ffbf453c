{{/*
A container of the values as Kubernetes has it: command, probe, hooks and mounts; and the volumes. Arguments: root, container, kind (runner, sidecar, agent or service).
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
# makes it a sidecar: it ends with the runner, and its own end doesn't end the pod
restartPolicy: Always
{{- end }}
{{- range $field := list "workingDir" "resources" "securityContext" }}
{{- with get $c $field }}
{{ $field }}: {{- include "minicluster.yaml" . | nindent 2 }}
{{- end }}
{{- end }}
{{- $ports := $c.ports | default list }}
{{- $brokerPort := include "minicluster.brokerPort" $root | float64 }}
{{- if and (eq $kind "runner") $root.Values.pod.hostNetwork (not (has $brokerPort $ports)) }}
{{- /* the scheduler then places no two brokers on a node, not even those of two MiniClusters */}}
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
  # a process of the kubelet costs a third of a broker's start: not while the node starts all of its pods
  initialDelaySeconds: 3
  periodSeconds: 1
  # it polls in the container, for 50 s
  timeoutSeconds: 60
  # a broker waits for the others without a limit: the probe must never end it
  failureThreshold: 2147483647
{{- end }}
{{- include "minicluster.mounts" . }}
{{- end }}

{{/* The hooks of a container: those of the values, and that of the runner, which tells the entrypoint of a stop. */}}
{{- define "minicluster.hooks" -}}
{{- $given := .container.lifeCycle | default dict -}}
{{- $leadOnly := list "/bin/sh" "-c" `[ "$JOB_COMPLETION_INDEX" != 0 ] || exec /bin/sh -c "$1"` "sh" -}}
{{- $shell := ternary $leadOnly (list "/bin/sh" "-c") (.container.leadOnly | default false) -}}
{{- with $given.postStartExec }}
postStart:
  exec:
    command: {{ append $shell . | toJson }}
{{- end }}
{{- if eq .kind "runner" }}
{{- if ne (include "minicluster.ownPreStop" .root) "true" }}
preStop:
  exec:
    command: {{ compact (list "/bin/sh" (printf "%s/configmap/stop.sh" .root.Values.flux.container.mountPath) $given.preStopExec) | toJson }}
{{- end }}
{{- else }}
{{- with $given.preStopExec }}
preStop:
  exec:
    command: {{ append $shell . | toJson }}
{{- end }}
{{- end }}
{{- end }}

{{/* "true" when pod.template has a preStop hook for the runner: a hook can have one action only. */}}
{{- define "minicluster.ownPreStop" -}}
{{- $own := false -}}
{{- range dig "spec" "containers" list .Values.pod.template }}
{{- if and (eq (get . "name") (include "minicluster.runnerName" $)) (dig "lifecycle" "preStop" dict .) }}{{ $own = true }}{{ end }}
{{- end -}}
{{- $own -}}
{{- end }}

{{/* The agent as a container of the values. It runs as the runner's user, who owns the broker's socket. */}}
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

{{/* "true" when the chart's shell programs start a container. */}}
{{- define "minicluster.wrapped" -}}
{{- $commands := .container.commands | default dict -}}
{{- or (eq .kind "runner") (eq .kind "agent") (and (not .container.noWrapEntrypoint) (or (not (empty .container.command)) (not (empty $commands.script)))) -}}
{{- end }}

{{/* What a container mounts: the cluster's own files, the view, and its own volumes. */}}
{{- define "minicluster.mounts" -}}
{{- $root := .root -}}
{{- $home := $root.Values.flux.container.mountPath -}}
{{- $mode := include "minicluster.viewMode" $root -}}
{{- $broker := ne .kind "service" -}}
{{- $wrapped := eq (include "minicluster.wrapped" .) "true" -}}
{{- if or $broker $wrapped .container.volumes }}
volumeMounts:
  {{- if $broker }}
  - name: minicluster
    mountPath: {{ $home | quote }}
  {{- end }}
  {{- if or $broker $wrapped }}
  - name: minicluster-config
    mountPath: {{ ternary "configmap" "minicluster" $broker | printf "%s/%s" $home | quote }}
  {{- end }}
  {{- if eq .kind "runner" }}
  - name: minicluster-curve
    mountPath: {{ printf "%s/curve" $home | quote }}
  {{- if include "minicluster.stateClaim" $root }}
  - name: minicluster-state
    mountPath: {{ printf "%s/state" $home | quote }}
  {{- end }}
  {{- if $root.Values.flux.mungeSecret }}
  - name: minicluster-munge
    mountPath: {{ printf "%s/munge" $home | quote }}
  {{- if eq (include "minicluster.mungeFolder" $root) "true" }}
  - name: minicluster-munge-socket
    mountPath: /run/munge
  {{- end }}
  {{- end }}
  {{- end }}
  {{- if and (eq .kind "runner") (eq (include "minicluster.sharedMemory" $root) "true") }}
  - name: minicluster-shm
    mountPath: /dev/shm
  {{- end }}
  {{- if and (eq .kind "agent") (eq (include "minicluster.agent" $root) "autoscaling") }}
  - name: minicluster-token
    mountPath: /var/run/secrets/kubernetes.io/serviceaccount
    readOnly: true
  {{- end }}
  {{- if and $broker (ne $mode "none") }}
  {{- $under := ternary "opt/" "" (eq $mode "image") }}
  - name: minicluster-view
    mountPath: /opt/software
    subPath: {{ $under }}software
    readOnly: true
  - name: minicluster-view
    mountPath: /opt/views
    subPath: {{ $under }}views
    readOnly: true
  {{- end }}
  {{- range $name, $volume := .container.volumes }}
  - name: {{ $name | quote }}
    mountPath: {{ $volume.path | default "/dev/shm" | quote }}
    {{- if $volume.readOnly }}
    readOnly: true
    {{- end }}
  {{- end }}
{{- end }}
{{- end }}

{{/* "true" when the runner gets a /dev/shm from the chart: the values mount none there, and hostIPC is off. */}}
{{- define "minicluster.sharedMemory" -}}
{{- $runner := fromJson (include "minicluster.runner" .) -}}
{{- $paths := list -}}
{{- range $runner.volumes }}{{ $paths = append $paths (.path | default "/dev/shm") }}{{ end -}}
{{- range dig "spec" "containers" list .Values.pod.template }}
{{- if eq (get . "name") (include "minicluster.runnerName" $) }}{{ range .volumeMounts }}{{ $paths = append $paths .mountPath }}{{ end }}{{ end }}
{{- end -}}
{{- $own := or (eq (toString .Values.pod.sharedMemory) "none") .Values.pod.hostIPC -}}
{{- range $paths }}{{ if eq (clean .) "/dev/shm" }}{{ $own = true }}{{ end }}{{ end -}}
{{- not $own -}}
{{- end }}

{{/* "true" when the runner gets a directory for munged's socket, which not every user can create: the values mount none. */}}
{{- define "minicluster.mungeFolder" -}}
{{- $runner := fromJson (include "minicluster.runner" .) -}}
{{- $own := false -}}
{{- range $runner.volumes }}{{ if has (trimSuffix "/" (toString .path)) (list "/run/munge" "/var/run/munge" "/run" "/var/run") }}{{ $own = true }}{{ end }}{{ end -}}
{{- and (not (empty .Values.flux.mungeSecret)) (not $own) -}}
{{- end }}

{{/* The volumes of containers, each name once. Arguments: root, containers. */}}
{{- define "minicluster.volumes" -}}
{{- $volumes := dict -}}
{{- $root := first . -}}
{{- range last . }}{{ range $name, $volume := .volumes }}{{ $_ := set $volumes $name $volume }}{{ end }}{{ end -}}
{{- range $name, $v := $volumes }}
- name: {{ $name | quote }}
  {{- if or $v.claimName $v.capacity }}
  persistentVolumeClaim:
    claimName: {{ include "minicluster.claimName" (list $root $name $v) | quote }}
  {{- else if $v.hostPath }}
  hostPath: {path: {{ $v.hostPath | quote }}, type: Directory}
  {{- else if $v.secretName }}
  secret:
    secretName: {{ $v.secretName | quote }}
    {{- include "minicluster.items" $v.items | nindent 4 }}
  {{- else if $v.configMapName }}
  configMap:
    name: {{ $v.configMapName | quote }}
    {{- include "minicluster.items" $v.items | nindent 4 }}
  {{- else if $v.csiDriver }}
  csi:
    driver: {{ $v.csiDriver | quote }}
    {{- with $v.csiDriverAttributes }}
    volumeAttributes: {{- include "minicluster.yaml" . | nindent 6 }}
    {{- end }}
  {{- else }}
  emptyDir:
    {{- if not (or $v.emptyDirMedium $v.emptyDirSizeLimit) }} {}{{ end }}
    {{- if eq (lower (toString $v.emptyDirMedium)) "memory" }}
    medium: Memory
    {{- end }}
    {{- with $v.emptyDirSizeLimit }}
    sizeLimit: {{ . | quote }}
    {{- end }}
  {{- end }}
{{- end }}
{{- end }}

{{- define "minicluster.items" -}}
{{- with . -}}
items:
  {{- range $key, $path := . }}
  - {key: {{ $key | quote }}, path: {{ $path | quote }}}
  {{- end }}
{{- end }}
{{- end }}
