{{/*
What is live: the objects of this release in the cluster. Offline (helm template, GitOps) there are none. Nothing is decided here.
*/}}

{{/*
An object in the release's namespace as JSON; "{}" when there is none. Arguments: root, API version, kind, name.
Helm gives all templates of a chart the same root, so each object is read once per render.
*/}}
{{- define "minicluster.lookup" -}}
{{- $root := (index . 0).cluster | default (index . 0) -}}{{- $version := index . 1 -}}{{- $kind := index . 2 -}}{{- $name := index . 3 -}}
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
{{- define "minicluster.foundJob" -}}
{{- include "minicluster.lookup" (list . "batch/v1" "Job" (include "minicluster.jobName" .)) -}}
{{- end }}

{{/* The immutable values that it was made with: a flat map of path to text, as JSON. */}}
{{- define "minicluster.foundValues" -}}
{{- include "minicluster.recordOf" (fromJson (include "minicluster.foundJob" .)) -}}
{{- end }}

{{/* The chart version that made it; "" when there is none. */}}
{{- define "minicluster.foundVersion" -}}
{{- include "minicluster.versionOf" (list . (fromJson (include "minicluster.foundJob" .))) -}}
{{- end }}

{{/* The record of a Job (_record.tpl), as JSON; "{}" for one without, and for none. */}}
{{- define "minicluster.recordOf" -}}
{{- dig "metadata" "annotations" "minicluster/immutable" "{}" . -}}
{{- end }}

{{/*
The chart version whose programs the pods of a Job run; "" for a Job that has no record. The first upgrade finds it in a
label, later upgrades in an annotation. Arguments: root, Job.
*/}}
{{- define "minicluster.versionOf" -}}
{{- $job := last . -}}
{{- if ne (include "minicluster.recordOf" $job) "{}" -}}
{{- $label := dig "metadata" "labels" "helm.sh/chart" "" $job | trimPrefix (printf "%s-" (first .).Chart.Name) -}}
{{- dig "metadata" "annotations" "minicluster/version" $label $job -}}
{{- end -}}
{{- end }}

{{/* "true" when the live Job is being deleted, else "". */}}
{{- define "minicluster.isDeleted" -}}
{{- with dig "metadata" "deletionTimestamp" "" (include "minicluster.foundJob" . | fromJson) }}true{{ end -}}
{{- end }}

{{/* "true" when the live Job, and that of each group, is suspended and not being deleted, else "". */}}
{{- define "minicluster.isSuspended" -}}
{{- $all := true -}}
{{- range include "minicluster.jobNames" . | fromJsonArray -}}
{{- $job := include "minicluster.lookup" (list $ "batch/v1" "Job" .) | fromJson -}}
{{- if or (not (dig "spec" "suspend" false $job)) (dig "metadata" "deletionTimestamp" "" $job) }}{{ $all = false }}{{ end -}}
{{- end -}}
{{- if $all }}true{{ end -}}
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
