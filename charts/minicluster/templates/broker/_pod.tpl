{{/*
The pod template of the brokers: containers and scheduling. It must not depend on size, on the chart's version or
on what is in the configuration, because Kubernetes refuses to change it on a live Job.
*/}}
{{- define "minicluster.podTemplate" -}}
{{- $runner := fromJson (include "minicluster.runner" .) -}}
{{- $view := .Values.flux.container -}}
{{- $mode := include "minicluster.viewMode" . -}}
{{- $pod := .Values.pod -}}
{{- $labels := print (include "minicluster.brokerSelector" .) "\n" (include "minicluster.hostSelector" .) (include "minicluster.groupLabels" .) (include "minicluster.gangLabels" .) -}}
{{- $last := printf "kubectl.kubernetes.io/default-container: %s\n%s" (include "minicluster.runnerName" . | quote) (include "minicluster.evictionAnnotations" .) -}}
metadata: {{- include "minicluster.who" (list . $labels (print (include "minicluster.gangAnnotations" .) (include "minicluster.segmentAnnotations" .)) $last) | nindent 2 }}
spec:
  subdomain: {{ include "minicluster.service" . | quote }}
  {{- if include "minicluster.schedulingPolicy" . }}
  schedulingGroup:
    podGroupName: {{ include "minicluster.name" . | quote }}
  {{- end }}
  restartPolicy: {{ $pod.restartPolicy }}
  {{- if .Values.shareProcessNamespace }}
  shareProcessNamespace: true
  {{- end }}
  {{- include "minicluster.podFields" (list . .Values.containers (include "minicluster.podAffinity" .)) | nindent 2 }}
  {{- $agent := include "minicluster.agent" . }}
  {{- if and (eq $agent "autoscaling") (not $pod.serviceAccountName) }}
  serviceAccountName: {{ include "minicluster.agentAccount" . | quote }}
  {{- end }}
  terminationGracePeriodSeconds: {{ int64 $pod.terminationGracePeriodSeconds }}
  {{- $sidecars := include "minicluster.sidecars" . | fromJsonArray }}
  {{- if or (eq $mode "copy") $sidecars (ne $agent "none") }}
  initContainers:
    {{- if eq $mode "copy" }}
    - name: {{ $view.name | quote }}
      image: {{ include "minicluster.viewImage" . | quote }}
      imagePullPolicy: {{ include "minicluster.pullPolicy" $view }}
      command: [/bin/sh, {{ printf "%s/minicluster/view.sh" $view.mountPath | quote }}{{ if $view.copyAll }}, all{{ end }}]
      env:
        - name: MINICLUSTER_VIEW
          value: {{ printf "%s/copy" $view.mountPath | quote }}
      {{- range $field := list "workingDir" "resources" "securityContext" }}
      {{- with get $view $field }}
      {{ $field }}: {{- include "minicluster.yaml" . | nindent 8 }}
      {{- end }}
      {{- end }}
      volumeMounts:
        - name: minicluster-view
          mountPath: {{ printf "%s/copy" $view.mountPath | quote }}
        - name: minicluster-config
          mountPath: {{ printf "%s/minicluster" $view.mountPath | quote }}
    {{- end }}
    {{- range $sidecars }}
    - {{ include "minicluster.container" (dict "root" $ "container" . "kind" "sidecar") | nindent 6 | trim }}
    {{- end }}
    {{- if ne $agent "none" }}
    {{- $container := fromJson (include "minicluster.agentContainer" .) }}
    - {{ include "minicluster.container" (dict "root" $ "container" $container "kind" "agent") | nindent 6 | trim }}
    {{- end }}
  {{- end }}
  {{- with include "minicluster.resourceClaims" . }}
  resourceClaims: {{- nindent 4 (trim .) }}
  {{- end }}
  containers:
    - {{ include "minicluster.container" (dict "root" . "container" $runner "kind" "runner") | nindent 6 | trim }}
  volumes:
    {{- include "minicluster.podVolumes" . | nindent 4 }}
    {{- include "minicluster.volumes" (list . .Values.containers) | nindent 4 }}
{{- end }}

{{/*
Annotations by which cluster-autoscaler and Karpenter leave the Kubernetes node of a pod alone. If unset, a pod may be
evicted when its jobs run again, or when the disruption budget decides.
*/}}
{{- define "minicluster.evictionAnnotations" -}}
{{- $pod := .Values.pod -}}
{{- $evictable := kindIs "bool" $pod.evictable | ternary $pod.evictable (or (eq $pod.onStop "requeue") $pod.disruptionBudget) -}}
{{- if not $evictable -}}
cluster-autoscaler.kubernetes.io/safe-to-evict: "false"
karpenter.sh/do-not-disrupt: "true"
{{- end -}}
{{- end }}

{{/* Fields that the brokers' pods and the services' pod share. Arguments: root, containers, a field for `affinity`. */}}
{{- define "minicluster.podFields" -}}
{{- $root := first . -}}
{{- $pod := $root.Values.pod -}}
automountServiceAccountToken: {{ $pod.automountServiceAccountToken }}
{{- if and $pod.hostNetwork (not $pod.dnsPolicy) }}
# the Kubernetes node's own DNS doesn't know the names of the brokers
dnsPolicy: ClusterFirstWithHostNet
{{- end }}
{{- range $field := list "serviceAccountName" "dnsPolicy" "hostIPC" "hostPID" "hostNetwork" "topologySpreadConstraints" "securityContext" }}
{{- with get $pod $field }}
{{ $field }}: {{- include "minicluster.yaml" . | nindent 2 }}
{{- end }}
{{- end }}
{{- $secrets := list $root.Values.flux.container.imagePullSecret }}
{{- range index . 1 }}{{ $secrets = append $secrets .imagePullSecret }}{{ end }}
{{ include "minicluster.where" (list $root $secrets (last .)) }}
{{- end }}
