{{/*
The pod template. It must not depend on size, on the chart's version or on what is in the configuration:
Kubernetes lets nothing in it change on a live Job.
*/}}
{{- define "minicluster.podTemplate" -}}
{{- $runner := fromJson (include "minicluster.runner" .) -}}
{{- $name := include "minicluster.runnerName" . -}}
{{- $view := .Values.flux.container -}}
{{- $mode := include "minicluster.viewMode" . -}}
{{- $pod := .Values.pod -}}
metadata:
  labels: {{- merge (include "minicluster.brokerSelector" . | fromYaml) $pod.labels | toYaml | nindent 4 }}
  annotations: {{- merge $pod.annotations (dict "kubectl.kubernetes.io/default-container" $name) | toYaml | nindent 4 }}
spec:
  subdomain: {{ include "minicluster.service" . }}
  restartPolicy: {{ $pod.restartPolicy }}
  automountServiceAccountToken: {{ $pod.automountServiceAccountToken }}
  enableServiceLinks: false
  {{- if .Values.shareProcessNamespace }}
  shareProcessNamespace: true
  {{- end }}
  {{- range $field := list "schedulerName" "serviceAccountName" "runtimeClassName" "dnsPolicy" "hostIPC" "hostPID" "hostNetwork" "priorityClassName" "nodeSelector" "tolerations" "topologySpreadConstraints" "securityContext" }}
  {{- with get $pod $field }}
  {{ $field }}: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- end }}
  {{- with $pod.resources }}
  overhead: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if kindIs "float64" $pod.terminationGracePeriodSeconds | or (kindIs "int64" $pod.terminationGracePeriodSeconds) }}
  terminationGracePeriodSeconds: {{ int64 $pod.terminationGracePeriodSeconds }}
  {{- end }}
  {{- with concat $pod.imagePullSecrets (list $runner.imagePullSecret $view.imagePullSecret) | compact | uniq }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . }}
    {{- end }}
  {{- end }}
  {{- include "minicluster.affinity" . | nindent 2 }}
  {{- if eq $mode "copy" }}
  initContainers:
    - name: {{ $view.name }}
      image: {{ include "minicluster.viewImage" . | quote }}
      imagePullPolicy: {{ include "minicluster.pullPolicy" $view }}
      command: [/bin/sh, {{ $view.mountPath }}/minicluster/view.sh]
      env:
        - name: MINICLUSTER_VIEW
          value: {{ $view.mountPath }}/copy
      {{- range $field := list "workingDir" "resources" "securityContext" }}
      {{- with get $view $field }}
      {{ $field }}: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- end }}
      volumeMounts:
        - name: minicluster-view
          mountPath: {{ $view.mountPath }}/copy
        - name: minicluster-config
          mountPath: {{ $view.mountPath }}/minicluster
  {{- end }}
  containers:
    - name: {{ $name }}
      image: {{ include "minicluster.image" $runner | quote }}
      imagePullPolicy: {{ include "minicluster.pullPolicy" $runner }}
      command: [/bin/sh, {{ $view.mountPath }}/minicluster/entrypoint.sh]
      {{- range $field := list "workingDir" "resources" "securityContext" }}
      {{- with get $runner $field }}
      {{ $field }}: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- end }}
      env:
        - name: MINICLUSTER_HOME
          value: {{ $view.mountPath }}
        {{- range $name, $value := $runner.environment }}
        - name: {{ $name }}
          value: {{ include "minicluster.literal" $value | toJson }}
        {{- end }}
        {{- range $name, $secret := $runner.secrets }}
        - name: {{ $name }}
          valueFrom:
            secretKeyRef: {name: {{ $secret.name }}, key: {{ $secret.key | quote }}}
        {{- end }}
      startupProbe:
        exec:
          command: [/bin/sh, {{ $view.mountPath }}/minicluster/ready.sh]
        periodSeconds: 1
        timeoutSeconds: 5
        # a broker waits for the others as long as it takes: the probe must never end it
        failureThreshold: 2147483647
      volumeMounts:
        - name: minicluster
          mountPath: {{ $view.mountPath }}
        - name: minicluster-config
          mountPath: {{ $view.mountPath }}/minicluster
        - name: minicluster-curve
          mountPath: {{ $view.mountPath }}/curve
        {{- if ne $mode "none" }}
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
  volumes:
    - name: minicluster
      emptyDir: {}
    - name: minicluster-config
      configMap:
        name: {{ include "minicluster.name" . }}-config
        defaultMode: 0555
    - name: minicluster-curve
      secret:
        secretName: {{ include "minicluster.curveSecret" . }}
        items:
          - {key: curve.cert, path: curve.cert}
    {{- if eq $mode "image" }}
    - name: minicluster-view
      image:
        reference: {{ include "minicluster.viewImage" . | quote }}
        pullPolicy: {{ include "minicluster.pullPolicy" $view }}
    {{- else if eq $mode "copy" }}
    - name: minicluster-view
      emptyDir: {}
    {{- end }}
{{- end }}

{{/* Preferred: the same zone, and a host for each pod. */}}
{{- define "minicluster.affinity" -}}
{{- if or .Values.pod.nodeAffinity (not .Values.network.disableAffinity) -}}
affinity:
  {{- with .Values.pod.nodeAffinity }}
  nodeAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      nodeSelectorTerms:
        - matchExpressions:
            {{- range $label, $allowed := . }}
            - {key: {{ $label | quote }}, operator: In, values: {{ toJson $allowed }}}
            {{- end }}
  {{- end }}
  {{- if not .Values.network.disableAffinity }}
  {{- $selector := include "minicluster.brokerSelector" . }}
  podAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: topology.kubernetes.io/zone
          labelSelector:
            matchLabels: {{- nindent 14 $selector }}
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: kubernetes.io/hostname
          labelSelector:
            matchLabels: {{- nindent 14 $selector }}
  {{- end }}
{{- end }}
{{- end }}
