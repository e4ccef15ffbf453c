{{/*
What is live: the objects of this release in the cluster. Offline (helm template, GitOps) there are none. Nothing is decided here.
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
