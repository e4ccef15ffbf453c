{{/*
What is live: the objects of this release in the cluster. Offline (helm template, GitOps) there are none.
*/}}

{{/*
An object in the release's namespace as JSON; "{}" when there is none. Arguments: root, API version, kind, name.
Helm gives all templates of a chart the same root, so each object is read once per render.
*/}}
{{- define "minicluster.lookup" -}}
{{- $root := index . 0 -}}{{- $version := index . 1 -}}{{- $kind := index . 2 -}}{{- $name := index . 3 -}}
{{- if not (hasKey $root "lookups") }}{{ $_ := set $root "lookups" dict }}{{ end -}}
{{- $key := printf "%s/%s" $kind $name -}}
{{- if not (hasKey $root.lookups $key) }}
{{- /* no object can have another name, and Kubernetes answers such a request with an error */}}
{{- $found := dict }}
{{- if regexMatch "^[-.0-9a-z]*$" $name }}{{ $found = lookup $version $kind $root.Release.Namespace $name }}{{ end }}
{{- $_ := set $root.lookups $key (toJson $found) }}
{{- end -}}
{{- get $root.lookups $key -}}
{{- end }}

{{/* The Job of this release as JSON; "{}" when there is none. */}}
{{- define "minicluster.liveJob" -}}
{{- include "minicluster.lookup" (list . "batch/v1" "Job" (include "minicluster.jobName" .)) -}}
{{- end }}

{{/* The ConfigMap of this release as JSON; "{}" when there is none. */}}
{{- define "minicluster.liveConfigMap" -}}
{{- include "minicluster.lookup" (list . "v1" "ConfigMap" (printf "%s-config" (include "minicluster.name" .))) -}}
{{- end }}

{{/* The certificate that the live release holds; "" when there is none. */}}
{{- define "minicluster.liveCertificate" -}}
{{- $name := printf "%s-curve" (include "minicluster.name" .) -}}
{{- $secret := include "minicluster.lookup" (list . "v1" "Secret" $name) | fromJson -}}
{{- dig "data" "curve.cert" "" $secret | b64dec -}}
{{- end }}

{{/* The immutable values that the live cluster was installed with, from its Job: a flat map of path to text, as JSON. */}}
{{- define "minicluster.installedValues" -}}
{{- $job := fromJson (include "minicluster.liveJob" .) -}}
{{- dig "metadata" "annotations" "minicluster/immutable" "{}" $job -}}
{{- end }}

{{/*
The chart version that installed the live cluster, whose programs its pods run; "" when there is none. The first upgrade
finds it in a label, later upgrades in an annotation.
*/}}
{{- define "minicluster.liveVersion" -}}
{{- if ne (include "minicluster.installedValues" .) "{}" -}}
{{- $job := fromJson (include "minicluster.liveJob" .) -}}
{{- $label := dig "metadata" "labels" "helm.sh/chart" "" $job | trimPrefix (printf "%s-" .Chart.Name) -}}
{{- dig "metadata" "annotations" "minicluster/version" $label $job -}}
{{- end -}}
{{- end }}

{{/*
The fields `completions`, `parallelism` and `suspend` of the Job, as JSON, from `size`. With autoscaling a live Job keeps its
size, and Kubernetes refuses a manifest of another one.
*/}}
{{- define "minicluster.counts" -}}
{{- $size := int64 .Values.size -}}
{{- $live := dig "spec" dict (fromJson (include "minicluster.liveJob" .)) -}}
{{- $queued := eq (include "minicluster.isQueued" .) "true" -}}
{{- /* as Kubernetes has no Job of 0 completions that has not ended, that of a group without pods is suspended */ -}}
{{- $counts := dict "completions" (max 1 $size) "parallelism" (max 1 $size) "suspend" (or .Values.suspend (and (eq $size 0) (not $queued))) -}}
{{- if and $queued (eq $size 0) -}}
{{- /* Kueue would resume it, so it has no parallelism; completions can't change without it */ -}}
{{- $counts = dict "completions" ($live.completions | default 1) "parallelism" 0 "suspend" false -}}
{{- end -}}
{{- if .Values.autoscaling.enabled -}}
{{- $beyond := add1 .Values.maxSize -}}
{{- if not $live -}}
{{- /* parallelism is not completions: Kubernetes then refuses to change completions, and one more starts no more pods */ -}}
{{- $counts = ternary (dict "completions" $beyond "parallelism" 0) (dict "completions" $size "parallelism" (add1 $size)) (eq $size 0) -}}
{{- else if and .group (dig "suspend" false $live) (not .Values.suspend) (not $queued) -}}
{{- /* a group that was empty before its autoscaling: the agent does the rest */ -}}
{{- $counts = dict "completions" $beyond "parallelism" $beyond "suspend" true -}}
{{- else -}}
{{- $completions := int64 $live.completions -}}
{{- $counts = dict "completions" $completions "parallelism" (ternary 0 (add1 $completions) (eq (int64 $live.parallelism) 0)) -}}
{{- end -}}
{{- $_ := set $counts "suspend" (or .Values.suspend $counts.suspend) -}}
{{- end -}}
{{- toJson $counts -}}
{{- end }}

{{/* The `completions` of the Job. */}}
{{- define "minicluster.completions" -}}
{{- (include "minicluster.counts" . | fromJson).completions | int64 -}}
{{- end }}

{{/*
The immutable part of the live Job's spec, as JSON; "" when there is none. It is rendered unchanged: a newer chart, or a
newer Kubernetes, changes only the next Job.
*/}}
{{- define "minicluster.liveSpec" -}}
{{- if ne (include "minicluster.installedValues" .) "{}" -}}
{{- $spec := (fromJson (include "minicluster.liveJob" .)).spec -}}
{{- /* the API server adds these; it refuses a new Job that has them */ -}}
{{- $metadata := omit ($spec.template.metadata | default dict) "creationTimestamp" -}}
{{- $_ := set $metadata "labels" (omit ($metadata.labels | default dict) "controller-uid" "job-name" "batch.kubernetes.io/controller-uid" "batch.kubernetes.io/job-name") -}}
{{- $_ := set $spec.template "metadata" $metadata -}}
{{- $spec = omit $spec "selector" "manualSelector" -}}
{{- range (include "minicluster.constants" . | fromJson).mutableJobFields }}{{ $_ := unset $spec . }}{{ end -}}
{{- if eq .change "place" }}{{ include "minicluster.changeTemplate" (list $spec.template (include "minicluster.newTemplate" . | fromJson)) }}{{ end -}}
{{- toJson $spec -}}
{{- end -}}
{{- end }}

{{/*
What Helm keeps of the last revision, from its Secret, for the post-renderer (plugin/minicluster/render/revision.py); ""
without a live Job. One hand-over document of a release has it: all charts of a release share `Release`.
*/}}
{{- define "minicluster.last" -}}
{{- $revision := sub .Release.Revision 1 -}}
{{- $isLive := false -}}
{{- range include "minicluster.jobNames" . | fromJsonArray -}}
{{- if ne (include "minicluster.lookup" (list $ "batch/v1" "Job" .)) "{}" }}{{ $isLive = true }}{{ end -}}
{{- end -}}
{{- if and (gt $revision 0) $isLive (not (hasKey .Release "last")) -}}
{{- $_ := set .Release "last" "handed over" -}}
{{- $secret := include "minicluster.lookup" (list . "v1" "Secret" (printf "sh.helm.release.v1.%s.v%d" .Release.Name $revision)) | fromJson -}}
{{- dig "data" "release" "" $secret -}}
{{- end -}}
{{- end }}

{{/*
Selector and pod template of the live services, as JSON; "" when there are none, or when the values of the services, or
the place of a suspended cluster's pods, change.
*/}}
{{- define "minicluster.liveServices" -}}
{{- if and (ne (include "minicluster.installedValues" .) "{}") (ne .change "place") -}}
{{- $name := printf "%s-services" (include "minicluster.name" .) -}}
{{- $live := include "minicluster.lookup" (list . "apps/v1" "Deployment" $name) | fromJson -}}
{{- if eq (dig "spec" "template" "metadata" "annotations" "minicluster/services" "" $live) (include "minicluster.servicesDigest" .) -}}
{{- $template := set $live.spec.template "metadata" (omit $live.spec.template.metadata "creationTimestamp") -}}
{{- dict "selector" $live.spec.selector "template" $template | toJson -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* The digest of the values of the services, by which an upgrade finds that they changed. */}}
{{- define "minicluster.servicesDigest" -}}
{{- toJson .Values.services | sha256sum -}}
{{- end }}

{{/*
What the post-renderer has to know of the live cluster (plugin/minicluster/render/upgrade.py), as JSON in base64, which
carries any text unchanged; "" when there is none.
*/}}
{{- define "minicluster.installed" -}}
{{- $was := fromJson (include "minicluster.installedValues" .) -}}
{{- /* without pods, new files and values do no harm */ -}}
{{- if and $was (ne .change "place") -}}
{{- $asked := fromJson (include "minicluster.immutableValues" .) -}}
{{- $mutable := (include "minicluster.constants" . | fromJson).mutableValues -}}
{{- $files := dig "data" dict (include "minicluster.liveConfigMap" . | fromJson) -}}
{{- dict "release" .Release.Name "was" $was "asked" $asked "mutable" $mutable "files" $files "hint" (.hint | default "") | toJson | b64enc -}}
{{- end -}}
{{- end }}
