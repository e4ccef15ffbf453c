{{/*
Kueue: the labels and annotations that it reads on the Job, and what can't change once it has admitted the Job.
*/}}

{{/* Labels of the Job for Kueue: its queue and its priority class. */}}
{{- define "minicluster.kueueLabels" -}}
{{- with .Values.kueue.queueName }}
kueue.x-k8s.io/queue-name: {{ . | quote }}
{{- end }}
{{- with .Values.kueue.priorityClass }}
kueue.x-k8s.io/priority-class: {{ . | quote }}
{{- end }}
{{- end }}

{{/* "true" when the Job is in a queue of Kueue, by the values or because the live one is, else "". */}}
{{- define "minicluster.isQueued" -}}
{{- $labels := dig "metadata" "labels" dict (fromJson (include "minicluster.keptJob" .)) -}}
{{- if or .Values.kueue.queueName (get (merge dict .Values.jobLabels $labels) "kueue.x-k8s.io/queue-name") }}true{{ end -}}
{{- end }}

{{/* The annotation of the Job by which Kueue lets it change its size; nothing without kueue.elastic. */}}
{{- define "minicluster.kueueAnnotations" -}}
{{- if .Values.kueue.elastic }}
kueue.x-k8s.io/elastic-job: "true"
{{- end }}
{{- end }}

{{/* Annotations of a pod by which Kueue gives all pods of a segment Kubernetes nodes with one value of a label. */}}
{{- define "minicluster.segmentAnnotations" -}}
{{- with .Values.pod.segments }}
{{- with .topologyKey }}
kueue.x-k8s.io/podset-slice-required-topology: {{ . | quote }}
kueue.x-k8s.io/podset-slice-size: {{ $.Values.pod.segments.size | int64 | toString | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/*
Fails if Kueue would restart all pods, or would refuse the Job after other objects have changed. A Job that waits for
Kueue is suspended, and may change.
*/}}
{{- define "minicluster.refuseKueueChange" -}}
{{- $job := fromJson (include "minicluster.keptJob" .) -}}
{{- $queue := dig "metadata" "labels" "kueue.x-k8s.io/queue-name" "" $job -}}
{{- if and $job (not (dig "spec" "suspend" false $job)) -}}
{{- $name := include "minicluster.jobName" . -}}
{{- $way := include "minicluster.anotherWay" . -}}
{{- with .Values.kueue.queueName -}}
{{- if ne . $queue -}}
{{- fail (printf "kueue.queueName can't change while the MiniCluster %s runs: it is %s, asked is %s; %s" $name ($queue | default "(unset)") . $way) -}}
{{- end -}}
{{- end -}}
{{- $size := dig "spec" "completions" 0 $job | int64 -}}
{{- $asked := include "minicluster.counts" . | fromJson -}}
{{- /* a group without pods, before or after, has none that would start again */ -}}
{{- $stays := and (dig "spec" "parallelism" 0 $job) $asked.parallelism -}}
{{- if and $queue $stays (ne $size (int64 $asked.completions)) (ne (include "minicluster.canGrowInKueue" $job) "true") -}}
{{- $elastic := dig "metadata" "annotations" "kueue.x-k8s.io/elastic-job" "" $job -}}
{{- $why := ternary "Kueue's feature gate ElasticJobsViaWorkloadSlices is off" "it was installed without kueue.elastic" (eq $elastic "true") -}}
{{- fail (printf "size can't change from %d to %d while the MiniCluster %s runs: Kueue would restart all pods, because %s; %s" $size (int64 $asked.completions) $name $why $way) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/*
"true" when Kueue made a Job elastic, else "". Kueue then adds a scheduling gate to the pod template. Argument: the Job.
*/}}
{{- define "minicluster.canGrowInKueue" -}}
{{- range dig "spec" "template" "spec" "schedulingGates" list . -}}
{{- if eq .name "kueue.x-k8s.io/elastic-job" }}true{{ end -}}
{{- end -}}
{{- end }}
