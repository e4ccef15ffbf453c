{{/*
Fields of the spec of a pod in which a program of the chart asks the API server: those of `upgrade.replace`, and of schedules.
It needs a Python: the view has one. A schedule's pod has the view as the brokers' pods have it, where that is a volume; that
of a hook runs before it is known that the runner's image does. Arguments: root; what its objects' names end with; the words
after `flux python`.
*/}}
{{- define "minicluster.programPod" -}}
{{- $root := index . 0 -}}{{- $name := printf "%s-%s" (include "minicluster.name" $root) (index . 1) -}}
{{- $runner := fromJson (include "minicluster.runner" $root) -}}
{{- $view := $root.Values.flux.container -}}
{{- $mounts := and (eq (index . 1) "schedules") (eq (include "minicluster.viewMode" $root) "image") -}}
{{- $own := or $view.disable $mounts -}}
serviceAccountName: {{ $name | quote }}
automountServiceAccountToken: true
{{- include "minicluster.placeBeside" (list $root (list $view.imagePullSecret $runner.imagePullSecret) $root.Values.pod.securityContext) | nindent 0 }}
containers:
  - name: {{ index . 1 | quote }}
    image: {{ ternary (include "minicluster.image" $runner) (include "minicluster.viewImage" $root) $own | quote }}
    imagePullPolicy: {{ include "minicluster.pullPolicy" (ternary $runner $view $own) }}
    {{- with merge dict ($view.securityContext | default dict) (include "minicluster.plainContext" $runner | fromJson) }}
    securityContext: {{- include "minicluster.yaml" . | nindent 6 }}
    {{- end }}
    resources: {{- include "minicluster.yaml" $root.Values.hooks.resources | nindent 6 }}
    command: {{- concat (list (ternary "flux" "/opt/views/view/bin/flux" $view.disable) "python") (index . 2) | include "minicluster.yaml" | nindent 6 }}
    {{- if eq (index . 1) "schedules" }}
    env:
      # which run it is
      - {name: MC_JOB, valueFrom: {fieldRef: {fieldPath: "metadata.labels['batch.kubernetes.io/job-name']"}}}
      - {name: MC_UID, valueFrom: {fieldRef: {fieldPath: "metadata.labels['batch.kubernetes.io/controller-uid']"}}}
    {{- end }}
    volumeMounts:
      - {name: config, mountPath: /minicluster}
      {{- if $mounts }}
      - {name: view, mountPath: /opt/software, subPath: opt/software, readOnly: true}
      - {name: view, mountPath: /opt/views, subPath: opt/views, readOnly: true}
      {{- end }}
volumes:
  - name: config
    configMap:
      name: {{ $name | quote }}
  {{- if $mounts }}
  - name: view
    image:
      reference: {{ include "minicluster.viewImage" $root | quote }}
      pullPolicy: {{ include "minicluster.pullPolicy" $view }}
  {{- end }}
{{- end }}
