{{/*
The volume mounts of a container: the cluster's own files, the view, and the container's volumes. Arguments: root,
container, kind.
*/}}
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
  - name: minicluster-files
    mountPath: {{ printf "%s/files" $home | quote }}
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
  {{- if and $root.Values.notify.secret.name (not $root.group) }}
  - name: minicluster-notify
    mountPath: {{ printf "%s/notify" $home | quote }}
    readOnly: true
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

{{/* "true" when the chart mounts /dev/shm in the runner: the values mount nothing there, and hostIPC is off. */}}
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

{{/*
"true" when the chart mounts a directory for munged's socket, which not every user can create: the values mount nothing
there.
*/}}
{{- define "minicluster.mungeFolder" -}}
{{- $runner := fromJson (include "minicluster.runner" .) -}}
{{- $own := false -}}
{{- range $runner.volumes }}{{ if has (trimSuffix "/" (toString .path)) (list "/run/munge" "/var/run/munge" "/run" "/var/run") }}{{ $own = true }}{{ end }}{{ end -}}
{{- and (not (empty .Values.flux.mungeSecret)) (not $own) -}}
{{- end }}
