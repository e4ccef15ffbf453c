{{/* The volumes of the brokers' pods that the chart makes: its own files, the view, and what the values ask for. */}}
{{- define "minicluster.podVolumes" -}}
{{- $view := .Values.flux.container -}}
{{- $mode := include "minicluster.viewMode" . -}}
- name: minicluster
  emptyDir: {}
- {name: minicluster-files, emptyDir: {medium: Memory}}
{{- include "minicluster.configVolume" . | nindent 0 }}
- name: minicluster-curve
  secret:
    secretName: {{ include "minicluster.curveSecret" . | quote }}
    items:
      - {key: curve.cert, path: curve.cert}
{{- with .Values.flux.mungeSecret }}
- name: minicluster-munge
  secret: {secretName: {{ . | quote }}, items: [{key: munge.key, path: munge.key}]}
{{- end }}
{{- if and .Values.notify.secret.name (not .group) }}
- name: minicluster-notify
  secret: {secretName: {{ .Values.notify.secret.name | quote }}, items: [{key: {{ .Values.notify.secret.key | quote }}, path: url}]}
{{- end }}
{{- if eq (include "minicluster.mungeFolder" .) "true" }}
- {name: minicluster-munge-socket, emptyDir: {}}
{{- end }}
{{- with include "minicluster.stateClaim" . }}
- name: minicluster-state
  persistentVolumeClaim:
    claimName: {{ . | quote }}
{{- end }}
{{- if eq (include "minicluster.sharedMemory" .) "true" }}
# the container runtime's own /dev/shm has 64 MB: too little for MPI and NCCL
- name: minicluster-shm
  emptyDir:
    medium: Memory
    {{- with .Values.pod.sharedMemory }}
    sizeLimit: {{ . | quote }}
    {{- end }}
{{- end }}
{{- if eq (include "minicluster.agent" .) "autoscaling" }}
# only the agent mounts this token
- name: minicluster-token
  projected:
    sources:
      - serviceAccountToken: {path: token}
      - configMap:
          name: kube-root-ca.crt
          items:
            - {key: ca.crt, path: ca.crt}
{{- end }}
{{- if eq $mode "image" }}
- name: minicluster-view
  image:
    reference: {{ include "minicluster.viewImage" . | quote }}
    pullPolicy: {{ include "minicluster.pullPolicy" $view }}
{{- else if eq $mode "copy" }}
- name: minicluster-view
  emptyDir: {{ with $view.copyMedium }}{medium: {{ . | quote }}}{{ else }}{}{{ end }}
{{- end }}
{{- end }}

{{/* The volume with the programs and the configuration. */}}
{{- define "minicluster.configVolume" -}}
{{- $config := printf "%s-config" (include "minicluster.name" .) -}}
{{- $programs := include "minicluster.programs" (list . (include "minicluster.jobName" .)) -}}
- name: minicluster-config
{{- if $programs }}
  projected:
    defaultMode: 0555
    sources:
      {{- include "minicluster.programSources" . | nindent 6 }}
      - configMap: {name: {{ $config | quote }}}
{{- else }}
  configMap:
    name: {{ $config | quote }}
    defaultMode: 0555
{{- end }}
{{- end }}

{{/* The volumes of a list of containers, each name once. Arguments: root, containers. */}}
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
  {{- else if $v.image }}
  image:
    reference: {{ $v.image | quote }}
    pullPolicy: {{ include "minicluster.pullPolicy" $v }}
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

{{/* The `items` of a volume, from a map of key to path; nothing for an empty map. */}}
{{- define "minicluster.items" -}}
{{- with . -}}
items:
  {{- range $key, $path := . }}
  - {key: {{ $key | quote }}, path: {{ $path | quote }}}
  {{- end }}
{{- end }}
{{- end }}
