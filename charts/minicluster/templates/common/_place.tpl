{{/*
Who the pods of a release are and where they run: what the values give to every pod, to that of the brokers, the services, the
hooks, the test and the program that follows the queue.
*/}}

{{/*
Labels and annotations of a pod: its own, those of the values, which its own override, and annotations that all override.
Arguments: root; own labels, own annotations and the last ones, each as YAML.
*/}}
{{- define "minicluster.who" -}}
{{- $pod := (first .).Values.pod -}}
labels: {{- merge (index . 1 | fromYaml) $pod.labels | include "minicluster.yaml" | nindent 2 }}
annotations: {{- merge (index . 2 | fromYaml) $pod.annotations (index . 3 | fromYaml) | include "minicluster.yaml" | nindent 2 }}
{{- end }}

{{/*
Fields of a pod's spec that say where it runs, and its pull secrets. Arguments: root, names of pull secrets, a field for
`affinity` beside the Kubernetes nodes of the values, as YAML.
*/}}
{{- define "minicluster.where" -}}
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
{{- with concat $pod.imagePullSecrets (index . 1) | compact | uniq }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . | quote }}
  {{- end }}
{{- end }}
{{- with list (include "minicluster.nodeAffinity" (first .)) (index . 2) | compact | join "\n" }}
affinity: {{- nindent 2 . }}
{{- end }}
{{- end }}

{{/*
The pull secrets of the account that the pods would have without one of the chart's, which has these too, as a field;
nothing offline.
*/}}
{{- define "minicluster.accountPullSecrets" -}}
{{- $account := include "minicluster.lookup" (list . "v1" "ServiceAccount" (.Values.pod.serviceAccountName | default "default")) | fromJson -}}
{{- with $account.imagePullSecrets -}}
imagePullSecrets: {{- include "minicluster.yaml" . | nindent 2 }}
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

{{/* Metadata of a pod that is an object of the release. Arguments: root, component, own annotations as YAML. */}}
{{- define "minicluster.podMetadata" -}}
{{- $root := index . 0 -}}
{{- $own := printf "%s\napp.kubernetes.io/component: %s" (include "minicluster.labels" $root) (index . 1) -}}
namespace: {{ $root.Release.Namespace | quote }}
{{ include "minicluster.who" (list $root $own (index . 2) "") }}
{{- end }}

{{/* Place and security context of a pod that runs no broker. Arguments: root, names of pull secrets, security context. */}}
{{- define "minicluster.placeBeside" -}}
{{- include "minicluster.where" (list (index . 0) (index . 1) "") }}
{{- with last . }}
securityContext: {{- include "minicluster.yaml" . | nindent 2 }}
{{- end }}
{{- end }}

{{/*
The securityContext of a runner as JSON, for our own containers: they need no privileges, and no procMount, which
Kubernetes refuses in pods without a user namespace.
*/}}
{{- define "minicluster.plainContext" -}}
{{- omit (.securityContext | default dict) "privileged" "procMount" | toJson -}}
{{- end }}
