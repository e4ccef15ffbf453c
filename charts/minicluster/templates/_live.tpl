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

{{/* "true" when a Job field that can't change later is to be set: as the live Job has it, else by version. */}}
{{- define "minicluster.jobField" -}}
{{- $root := index . 0 -}}
{{- $job := fromJson (include "minicluster.liveJob" $root) -}}
{{- if $job }}{{ hasKey $job.spec (index . 1) }}{{ else }}{{ include "minicluster.atLeast" (list $root (index . 2)) }}{{ end -}}
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
What can't change on a live cluster: all values but these. The certificate is compared with the Secret
instead, so that it never stands in an annotation.
*/}}
{{- define "minicluster.frozen" -}}
{{- $values := deepCopy .Values -}}
{{- range list "global" "nameOverride" "services" "size" "minSize" "jobLabels" "deadlineSeconds" "backoffLimit" "cleanup" "autoscaling" "metrics" "networkPolicy" }}
{{- $_ := unset $values . }}
{{- end -}}
{{- $_ := set $values.agent "does" (include "minicluster.agent" .) -}}
{{- if ne $values.agent.does "none" }}{{ $_ := set $values "metrics" (pick .Values.metrics "port") }}{{ end -}}
{{- $_ := unset $values.agent "periodSeconds" -}}
{{- $_ := unset $values.flux "curveCert" -}}
{{- $_ := unset $values.flux.bursting "expose" -}}
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

{{/* Values of our own that have a default: one that the live cluster has not is new in the chart. */}}
{{- define "minicluster.closed" -}}
^((flux\.((scheduler|container|bursting|bursting\.expose)\.)?|agent\.|metrics\.|state\.|network\.|logging\.|archive\.|pod\.)?[a-zA-Z]+)$
{{- end }}

{{/* Fails, naming the value, where an upgrade asks for what a live cluster can't become. */}}
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
{{- $new := fromJson (include "minicluster.frozen" .) -}}
{{- $does := get $old "agent.does" | default "none" -}}
{{- $asked := include "minicluster.agentAsked" . -}}
{{- if or (and (eq $asked "autoscaling") (ne $does "autoscaling")) (and (eq $asked "metrics") (eq $does "none")) }}
{{- fail (printf "%s.enabled can't be turned on on the live MiniCluster %s, which was installed without it; %s" $asked $name $way) }}
{{- end }}
{{- $empty := list "{}" "[]" "null" -}}
{{- range $path := concat (keys $old) (keys $new) | uniq | sortAlpha }}
{{- $was := hasKey $old $path | ternary (get $old $path) "null" }}{{ $is := hasKey $new $path | ternary (get $new $path) "null" }}
{{- $new_in_chart := and (not (hasKey $old $path)) (regexMatch (include "minicluster.closed" $root) $path) }}
{{- if not (or (eq $was $is) $new_in_chart (and (has $was $empty) (has $is $empty))) }}
{{- $shown := printf "it is %s, asked is %s" (has $was (append $empty "") | ternary "(unset)" $was) (has $is (append $empty "") | ternary "(unset)" $is) }}
{{- fail (printf "%s can't change on the live MiniCluster %s: %s; %s" $path $name $shown $way) }}
{{- end }}
{{- end }}
{{- if not .Values.flux.curveCertSecret }}
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
