{{/*
The hooks of a container: those of the values, and for the runner one that tells the entrypoint of a stop. Arguments:
root, container, kind.
*/}}
{{- define "minicluster.hooks" -}}
{{- $given := .container.lifeCycle | default dict -}}
{{- $leadOnly := list "/bin/sh" "-c" `[ "$JOB_COMPLETION_INDEX$MINICLUSTER_GROUP" != 0 ] || exec /bin/sh -c "$1"` "sh" -}}
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

{{/* "true" when pod.template has a preStop hook for the runner. The chart then adds none: a hook has only one action. */}}
{{- define "minicluster.ownPreStop" -}}
{{- $own := false -}}
{{- range dig "spec" "containers" list .Values.pod.template }}
{{- if and (eq (get . "name") (include "minicluster.runnerName" $)) (dig "lifecycle" "preStop" dict .) }}{{ $own = true }}{{ end }}
{{- end -}}
{{- $own -}}
{{- end }}
