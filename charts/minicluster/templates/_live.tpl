{{/*
What is true of the live cluster. Offline (helm template, GitOps) there is none, and `lookup` finds nothing.
*/}}

{{- define "minicluster.liveJob" -}}
{{- lookup "batch/v1" "Job" .Release.Namespace (include "minicluster.name" .) | toJson -}}
{{- end }}

{{/* "true" when Helm talks to a cluster of at least this version: offline, the portable choice is made. */}}
{{- define "minicluster.atLeast" -}}
{{- $root := first . -}}
{{- and ($root.Capabilities.APIVersions.Has "batch/v1/Job") (semverCompare (printf ">=%s-0" (last .)) $root.Capabilities.KubeVersion.Version) -}}
{{- end }}

{{/* "true" when Helm talks to a cluster that is older than this version. */}}
{{- define "minicluster.olderThan" -}}
{{- $root := first . -}}
{{- and ($root.Capabilities.APIVersions.Has "batch/v1/Job") (semverCompare (printf "<%s-0" (last .)) $root.Capabilities.KubeVersion.Version) -}}
{{- end }}

{{/* How the view comes into the pods: none, image or copy. A live cluster keeps its way. */}}
{{- define "minicluster.viewMode" -}}
{{- $recorded := fromJson (include "minicluster.recorded" .) -}}
{{- $mode := .Values.flux.container.mode -}}
{{- if .Values.flux.container.disable }}none
{{- else if ne $mode "auto" }}{{ $mode }}
{{- else if $recorded }}{{ get $recorded "flux.container.mode" }}
{{- else if eq (include "minicluster.atLeast" (list . "1.36")) "true" }}image
{{- else }}copy
{{- end -}}
{{- end }}

{{/* Hosts that the broker configuration registers; unset, a live cluster keeps what it was installed with. */}}
{{- define "minicluster.maxSize" -}}
{{- $recorded := fromJson (include "minicluster.recorded" .) -}}
{{- .Values.maxSize | default (get $recorded "maxSize") | default .Values.size | int64 -}}
{{- end }}

{{/*
What the sidecar of the lead may do: none (there is no such sidecar), metrics, or autoscaling, which has a token.
A live cluster keeps what it was installed with.
*/}}
{{- define "minicluster.agent" -}}
{{- $recorded := fromJson (include "minicluster.recorded" .) -}}
{{- if $recorded }}{{ get $recorded "agent.does" | default "none" }}
{{- else }}{{ include "minicluster.agentAsked" . }}
{{- end -}}
{{- end }}

{{- define "minicluster.agentAsked" -}}
{{- if .Values.autoscaling.enabled }}autoscaling{{ else if .Values.metrics.enabled }}metrics{{ else }}none{{ end -}}
{{- end }}

{{/* Pods of the Job: `size`, but a live cluster that scales itself has the size that it has. */}}
{{- define "minicluster.completions" -}}
{{- $job := fromJson (include "minicluster.liveJob" .) -}}
{{- if .Values.autoscaling.enabled }}{{ dig "spec" "completions" .Values.size $job | int64 }}{{ else }}{{ int64 .Values.size }}{{ end -}}
{{- end }}

{{/* What the live Job was made of, as recorded on it: a flat map of path to value. */}}
{{- define "minicluster.recorded" -}}
{{- $job := fromJson (include "minicluster.liveJob" .) -}}
{{- dig "metadata" "annotations" "minicluster/frozen" "{}" $job -}}
{{- end }}

{{/*
The spec of the live Job but for what may change on it, as JSON; "" when there is none. Kubernetes lets nothing of this
change, so it is rendered as it is: another chart's pod template, or another choice by version, is for the next Job.
*/}}
{{- define "minicluster.liveSpec" -}}
{{- if ne (include "minicluster.recorded" .) "{}" -}}
{{- $spec := (fromJson (include "minicluster.liveJob" .)).spec -}}
{{- /* what the API server adds to a Job is not ours to set: a manifest that has it could make no new Job */ -}}
{{- $metadata := omit ($spec.template.metadata | default dict) "creationTimestamp" -}}
{{- $_ := set $metadata "labels" (omit ($metadata.labels | default dict) "controller-uid" "job-name" "batch.kubernetes.io/controller-uid" "batch.kubernetes.io/job-name") -}}
{{- $_ := set $spec.template "metadata" $metadata -}}
{{- omit $spec "completions" "parallelism" "backoffLimit" "activeDeadlineSeconds" "ttlSecondsAfterFinished" "suspend" "selector" "manualSelector" | toJson -}}
{{- end -}}
{{- end }}

{{/*
What the post-renderer is told of the live cluster: what its Job was made of, what is asked now, what may change, and the
files that its pods read. As JSON in base64, so that any text arrives as it is; "" when there is none.
*/}}
{{- define "minicluster.live" -}}
{{- $recorded := fromJson (include "minicluster.recorded" .) -}}
{{- if $recorded -}}
{{- $config := lookup "v1" "ConfigMap" .Release.Namespace (printf "%s-config" (include "minicluster.name" .)) -}}
{{- $asked := fromJson (include "minicluster.frozen" .) -}}
{{- dict "release" .Release.Name "was" $recorded "asked" $asked "free" (include "minicluster.free" . | fromJsonArray) "files" (dig "data" dict $config) | toJson | b64enc -}}
{{- end -}}
{{- end }}

{{/*
The chart's version at the install of the live cluster, whose programs its pods have; "" when there is none. A first
upgrade finds it as the label, later ones as it was noted then.
*/}}
{{- define "minicluster.liveVersion" -}}
{{- if ne (include "minicluster.recorded" .) "{}" -}}
{{- $job := fromJson (include "minicluster.liveJob" .) -}}
{{- $label := dig "metadata" "labels" "helm.sh/chart" "" $job | trimPrefix (printf "%s-" .Chart.Name) -}}
{{- dig "metadata" "annotations" "minicluster/version" $label $job -}}
{{- end -}}
{{- end }}

{{/* Selector and template of the live pod of the services, as JSON, while the services are what they were; else "". */}}
{{- define "minicluster.liveServices" -}}
{{- if ne (include "minicluster.recorded" .) "{}" -}}
{{- $live := lookup "apps/v1" "Deployment" .Release.Namespace (printf "%s-services" (include "minicluster.name" .)) -}}
{{- if eq (dig "spec" "template" "metadata" "annotations" "minicluster/services" "" $live) (include "minicluster.servicesDigest" .) -}}
{{- $template := set $live.spec.template "metadata" (omit $live.spec.template.metadata "creationTimestamp") -}}
{{- dict "selector" $live.spec.selector "template" $template | toJson -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "minicluster.servicesDigest" -}}
{{- toJson .Values.services | sha256sum -}}
{{- end }}

{{/* Values that may change on a live cluster, in whole; the certificate is compared with the Secret. */}}
{{- define "minicluster.free" -}}
{{- list "global" "nameOverride" "services" "size" "minSize" "jobLabels" "deadlineSeconds" "backoffLimit" "cleanup" "autoscaling" "metrics" "networkPolicy" "agent.periodSeconds" "flux.curveCert" "flux.bursting.expose" | toJson -}}
{{- end }}

{{/*
What can't change on a live cluster: all other values, as a flat map. The post-renderer compares, see
plugin/minicluster/upgrade.py.
*/}}
{{- define "minicluster.frozen" -}}
{{- $values := deepCopy .Values -}}
{{- range include "minicluster.free" . | fromJsonArray }}
{{- $path := splitList "." . }}{{ $map := $values }}
{{- range initial $path }}{{ $map = get $map . | default dict }}{{ end }}
{{- $_ := unset $map (last $path) }}
{{- end -}}
{{- $_ := set $values.agent "does" (include "minicluster.agent" .) -}}
{{- if ne $values.agent.does "none" }}{{ $_ := set $values "metrics" (pick .Values.metrics "port") }}{{ end -}}
{{- $_ := set $values "maxSize" (include "minicluster.maxSize" .) -}}
{{- $_ := set $values.flux.container "mode" (include "minicluster.viewMode" .) -}}
{{- fromYaml (include "minicluster.flatten" (list "" $values)) | toJson -}}
{{- end }}

{{/* Lines `path: value` for all leaves of a value, as JSON; long texts as their digest. */}}
{{- define "minicluster.flatten" -}}
{{- $path := first . -}}{{- $value := last . -}}
{{- if and (kindIs "map" $value) $value }}
{{- range $key, $item := $value }}
{{- include "minicluster.flatten" (list (ternary $key (printf "%s.%s" $path $key) (empty $path)) $item) }}
{{- end }}
{{- else if and (kindIs "slice" $value) $value }}
{{- range $index, $item := $value }}
{{- include "minicluster.flatten" (list (printf "%s[%d]" $path $index) $item) }}
{{- end }}
{{- else if not (kindIs "invalid" $value) }}
{{- $text := kindIs "string" $value | ternary (toString $value) (toJson $value) }}
{{ toJson $path }}: {{ ternary $text (printf "sha256:%s" (sha256sum $text)) (le (len $text) 64) | toJson }}
{{- end }}
{{- end }}

{{/*
Fails, naming the value, where an upgrade asks for what a live cluster can't become. Values that are recorded are the
post-renderer's to compare.
*/}}
{{- define "minicluster.refuse" -}}
{{- $root := . -}}
{{- $name := include "minicluster.name" . -}}
{{- $old := fromJson (include "minicluster.recorded" .) -}}
{{- if and (ne (include "minicluster.agent" .) "none") (eq (include "minicluster.olderThan" (list . "1.29")) "true") }}
{{- fail (printf "autoscaling and metrics need Kubernetes 1.29, this is %s: turn them off" .Capabilities.KubeVersion.Version) }}
{{- end }}
{{- if and (include "minicluster.sidecars" . | fromJsonArray) (eq (include "minicluster.olderThan" (list . "1.29")) "true") }}
{{- fail (printf "containers beside the one that runs Flux need Kubernetes 1.29, this is %s: use services" .Capabilities.KubeVersion.Version) }}
{{- end }}
{{- if and .Values.flux.minimalService (eq (include "minicluster.olderThan" (list . "1.28")) "true") }}
{{- fail (printf "flux.minimalService needs Kubernetes 1.28, this is %s: drop it" .Capabilities.KubeVersion.Version) }}
{{- end }}
{{- $way := printf "uninstall %s first, or install under another name" .Release.Name -}}
{{- if and .Release.IsUpgrade (not $old) -}}
{{- range (lookup "batch/v1" "Job" .Release.Namespace "").items }}
{{- $annotations := .metadata.annotations | default dict }}
{{- if and (eq (get $annotations "meta.helm.sh/release-name") $root.Release.Name) (hasKey $annotations "minicluster/frozen") }}
{{- fail (printf "nameOverride can't change on the live MiniCluster %s: asked is %s; %s" .metadata.name $name $way) }}
{{- end }}
{{- end }}
{{- /* with cleanup it is not there when it has ended, and would be made, and run, once more */ -}}
{{- $config := lookup "v1" "ConfigMap" .Release.Namespace (printf "%s-config" $name) -}}
{{- if and .Values.cleanup (eq (dig "metadata" "annotations" "meta.helm.sh/release-name" "" $config) .Release.Name) }}
{{- fail (printf "the Job of %s has ended and was cleaned up, and an upgrade would run its work again: uninstall %s first, or set cleanup to false" $name .Release.Name) }}
{{- end }}
{{- end }}
{{- if $old -}}
{{- if dig "metadata" "deletionTimestamp" "" (fromJson (include "minicluster.liveJob" .)) }}
{{- fail (printf "the Job %s is being deleted: wait until it is gone, then upgrade again" $name) }}
{{- end }}
{{- $does := get $old "agent.does" | default "none" -}}
{{- $asked := include "minicluster.agentAsked" . -}}
{{- if or (and (eq $asked "autoscaling") (ne $does "autoscaling")) (and (eq $asked "metrics") (eq $does "none")) }}
{{- fail (printf "%s.enabled can't be turned on on the live MiniCluster %s, which was installed without it; %s" $asked $name $way) }}
{{- end }}
{{- if not (or .Values.flux.curveCertSecret (get $old "flux.curveCertSecret")) }}
{{- $certificate := include "minicluster.liveCertificate" . }}
{{- if not $certificate }}
{{- fail (printf "the Secret %s-curve of the live MiniCluster %s is gone, and its brokers hold the old certificate: restore the Secret, or %s" $name $name $way) }}
{{- end }}
{{- if and .Values.flux.curveCert (ne (trim .Values.flux.curveCert) (trim $certificate)) }}
{{- fail (printf "flux.curveCert can't change on the live MiniCluster %s: its brokers hold another certificate; %s" $name $way) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* The certificate that the live release holds, "" when there is none. */}}
{{- define "minicluster.liveCertificate" -}}
{{- $secret := lookup "v1" "Secret" .Release.Namespace (printf "%s-curve" (include "minicluster.name" .)) -}}
{{- dig "data" "curve.cert" "" $secret | b64dec -}}
{{- end }}
