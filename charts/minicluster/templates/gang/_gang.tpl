{{/*
Gangs: how a pod names its PodGroup, how many pods start together, and which changes are refused.
*/}}

{{/* The pod label that names the PodGroup of scheduler-plugins; nothing for another kind of gang. */}}
{{- define "minicluster.gangLabels" -}}
{{- if eq .Values.gang.kind "coscheduling" }}
scheduling.x-k8s.io/pod-group: {{ include "minicluster.name" . | quote }}
{{- end }}
{{- end }}

{{/* The pod annotation that names the PodGroup of Volcano; nothing for another kind of gang. */}}
{{- define "minicluster.gangAnnotations" -}}
{{- if eq .Values.gang.kind "volcano" }}
scheduling.k8s.io/group-name: {{ include "minicluster.name" . | quote }}
{{- end }}
{{- end }}

{{/* How many pods start together: minSize, else the smallest size that the cluster can have; and so for each group. */}}
{{- define "minicluster.gangSize" -}}
{{- $scales := .Values.autoscaling.enabled -}}
{{- $size := .Values.minSize | default (ternary .Values.autoscaling.min .Values.size $scales) | int64 -}}
{{- range include "minicluster.groups" . | fromJsonArray -}}
{{- $least := ternary (dig "autoscaling" "min" 0 .) .size $scales -}}
{{- $size = add $size (hasKey . "minSize" | ternary .minSize $least) -}}
{{- end -}}
{{- $size -}}
{{- end }}

{{/*
Policy of the PodGroup for Kubernetes' own scheduler: gang (the pods start together) or basic (one by one); "" without a
PodGroup. Kubernetes 1.36 with PodGroups may make a gang of any Job that has none, and then refuses to change its size.
A basic PodGroup keeps the Job elastic. A live cluster keeps the PodGroup of its install.
*/}}
{{- define "minicluster.schedulingPolicy" -}}
{{- $policy := ternary "gang" "basic" (eq .Values.gang.kind "kubernetes") -}}
{{- $spec := get .Values.pod.template "spec" -}}
{{- $own := and (kindIs "map" $spec) (hasKey ($spec | default dict) "schedulingGroup") -}}
{{- if $own }}
{{- else if ne (include "minicluster.keptValues" .) "{}" }}
{{- $live := fromJson (include "minicluster.keptJob" .) }}
{{- if dig "spec" "template" "spec" "schedulingGroup" "" $live }}{{ $policy }}{{ end }}
{{- else if or (eq $policy "gang") (include "minicluster.makesGangs" .) }}{{ $policy }}
{{- end -}}
{{- end }}

{{/* "true" on a cluster that may make a gang of a Job, else "". */}}
{{- define "minicluster.makesGangs" -}}
{{- if .Capabilities.APIVersions.Has "scheduling.k8s.io/v1alpha2/PodGroup" }}true{{ end -}}
{{- end }}

{{/* How many pods start together under Kubernetes' own scheduler. In v1alpha2 the live number is immutable. */}}
{{- define "minicluster.minCount" -}}
{{- $size := include "minicluster.gangSize" . | int64 -}}
{{- if eq (include "minicluster.podGroups" .) "v1alpha2" -}}
{{- $live := include "minicluster.lookup" (list . "scheduling.k8s.io/v1alpha2" "PodGroup" (include "minicluster.name" .)) | fromJson -}}
{{- $size = dig "spec" "schedulingPolicy" "gang" "minCount" $size $live | int64 -}}
{{- end -}}
{{- $size -}}
{{- end }}

{{/*
Fails if Kubernetes would refuse a new size after other objects have changed, or if the old PodGroup is still being
deleted.
*/}}
{{- define "minicluster.refuseGangChange" -}}
{{- $job := fromJson (include "minicluster.keptJob" .) -}}
{{- $api := printf "scheduling.k8s.io/%s" (include "minicluster.podGroups" .) -}}
{{- $name := include "minicluster.name" . -}}
{{- if $job -}}
{{- $size := dig "spec" "completions" 0 $job | int64 -}}
{{- $asked := include "minicluster.completions" . | int64 -}}
{{- if and (ne $size $asked) (include "minicluster.makesGangs" .) -}}
{{- $named := dig "spec" "template" "spec" "schedulingGroup" "podGroupName" "" $job -}}
{{- $way := include "minicluster.anotherWay" . -}}
{{- range (include "minicluster.lookup" (list . $api "PodGroup" "") | fromJson).items -}}
{{- $owners := list -}}
{{- range .metadata.ownerReferences }}{{ $owners = append $owners .uid }}{{ end -}}
{{- if and .spec.schedulingPolicy.gang (or (eq .metadata.name $named) (has $job.metadata.uid $owners)) -}}
{{- $what := printf "size%s" (empty $.group | ternary "" (printf " of the group %s" $.group)) -}}
{{- fail (printf "%s can't change from %d to %d: the MiniCluster %s is a gang, the PodGroup %s, whose size is immutable before Kubernetes %s; %s" $what $size $asked $name .metadata.name (include "minicluster.since" "resizableGangs") $way) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- else if include "minicluster.schedulingPolicy" . -}}
{{- $group := include "minicluster.lookup" (list . $api "PodGroup" $name) | fromJson -}}
{{- if dig "metadata" "deletionTimestamp" "" $group -}}
{{- fail (printf "the PodGroup %s is being deleted: wait until it and the pods that it belongs to are gone, then install again" $name) -}}
{{- end -}}
{{- end -}}
{{- end }}
