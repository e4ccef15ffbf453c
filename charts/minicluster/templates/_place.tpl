{{/*
Who the pods of a release are and where they run: what the values give to every pod, to that of the brokers, the services, the
hooks, the test and the program that follows the queue.
*/}}

{{/* Labels of a pod: those of the values, and its own, which override them. Arguments: root, own labels as YAML. */}}
{{- define "minicluster.podLabels" -}}
{{- merge (last . | fromYaml) (first .).Values.pod.labels | include "minicluster.yaml" -}}
{{- end }}

{{/* Metadata of a pod that is an object of the release. Arguments: root, component, own annotations as YAML. */}}
{{- define "minicluster.podMetadata" -}}
{{- $root := index . 0 -}}
{{- $own := printf "%s\napp.kubernetes.io/component: %s" (include "minicluster.labels" $root) (index . 1) -}}
namespace: {{ $root.Release.Namespace | quote }}
labels: {{- include "minicluster.podLabels" (list $root $own) | nindent 2 }}
annotations: {{- include "minicluster.podAnnotations" (list $root (index . 2)) | nindent 2 }}
{{- end }}

{{/* Annotations of a pod: those of the values, and its own, which override them. Arguments: root, own annotations as YAML. */}}
{{- define "minicluster.podAnnotations" -}}
{{- merge (last . | fromYaml) (first .).Values.pod.annotations | include "minicluster.yaml" -}}
{{- end }}

{{/* Fields of a pod's spec that say where it runs, and its pull secrets. Arguments: root, names of pull secrets. */}}
{{- define "minicluster.place" -}}
{{- $pod := (first .).Values.pod -}}
enableServiceLinks: false
{{- range $field := list "schedulerName" "runtimeClassName" "priorityClassName" "nodeSelector" "tolerations" }}
{{- with get $pod $field }}
{{ $field }}: {{- include "minicluster.yaml" . | nindent 2 }}
{{- end }}
{{- end }}
{{- with $pod.resources }}
overhead: {{- include "minicluster.yaml" . | nindent 2 }}
{{- end }}
{{- with concat $pod.imagePullSecrets (last .) | compact | uniq }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . | quote }}
  {{- end }}
{{- end }}
{{- end }}

{{/* The Kubernetes nodes that `pod.nodeAffinity` allows, as a field of a pod's `affinity`; nothing without it. */}}
{{- define "minicluster.nodeAffinity" -}}
{{- with .Values.pod.nodeAffinity -}}
nodeAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    nodeSelectorTerms:
      - matchExpressions:
          {{- range $label, $allowed := . }}
          - {key: {{ $label | quote }}, operator: In, values: [{{ range $index, $one := $allowed }}{{ if $index }}, {{ end }}{{ $one | quote }}{{ end }}]}
          {{- end }}
{{- end }}
{{- end }}

{{/* Place and security context of a pod that runs no broker. Arguments: root, names of pull secrets, security context. */}}
{{- define "minicluster.placeBeside" -}}
{{- include "minicluster.place" (list (index . 0) (index . 1)) }}
{{- with include "minicluster.nodeAffinity" (first .) }}
affinity: {{- nindent 2 . }}
{{- end }}
{{- with last . }}
securityContext: {{- include "minicluster.yaml" . | nindent 2 }}
{{- end }}
{{- end }}
