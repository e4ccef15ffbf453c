{{/* Choices by the version of Kubernetes. A live cluster keeps the choices of its install. */}}

{{/*
Whether the cluster supports a feature: yes, no, or unknown. It is unknown offline (helm template, GitOps); the chart
then makes the portable choice. Arguments: root, feature.
*/}}
{{- define "minicluster.supports" -}}
{{- $root := first . -}}
{{- if not ($root.Capabilities.APIVersions.Has "batch/v1/Job") }}unknown
{{- else if semverCompare (printf ">=%s-0" (include "minicluster.since" (last .))) $root.Capabilities.KubeVersion.Version }}yes
{{- else }}no
{{- end -}}
{{- end }}

{{/* The first version of Kubernetes that has a feature by default. */}}
{{- define "minicluster.since" -}}
{{- get (dict "minimalService" "1.28" "sidecars" "1.29" "backoffLimitPerIndex" "1.29" "successPolicy" "1.31" "resourceClaims" "1.34" "imageVolumesOnSomeNodes" "1.35" "restartRules" "1.35" "imageVolumes" "1.36" "suspendedChanges" "1.36" "resizableGangs" "1.37") . -}}
{{- end }}

{{/*
API version of Kubernetes' own PodGroups; "" when the cluster does not serve them: they need the feature gate
GenericWorkload. Kubernetes 1.36 has v1alpha2, with gangs of an immutable size. Offline, the newer version counts.
*/}}
{{- define "minicluster.podGroups" -}}
{{- $served := .Capabilities.APIVersions -}}
{{- if $served.Has "scheduling.k8s.io/v1beta1/PodGroup" }}v1beta1
{{- else if $served.Has "scheduling.k8s.io/v1alpha2/PodGroup" }}v1alpha2
{{- else if $served.Has "v1/Pod" }}
{{- else if eq (include "minicluster.supports" (list . "resizableGangs")) "no" }}v1alpha2
{{- else }}v1beta1
{{- end -}}
{{- end }}

{{/*
API version of resource claims: the newest that the cluster serves, "" when it serves none. Until Kubernetes 1.34 they
need the feature gate DynamicResourceAllocation, and a beta version that is turned on.
*/}}
{{- define "minicluster.claimVersion" -}}
{{- $served := .Capabilities.APIVersions -}}
{{- if $served.Has "resource.k8s.io/v1/ResourceClaimTemplate" }}v1
{{- else if $served.Has "resource.k8s.io/v1beta2/ResourceClaimTemplate" }}v1beta2
{{- else if $served.Has "resource.k8s.io/v1beta1/ResourceClaimTemplate" }}v1beta1
{{- else if $served.Has "v1/Pod" }}
{{- else if eq (include "minicluster.supports" (list . "resourceClaims")) "no" }}v1beta1
{{- else }}v1
{{- end -}}
{{- end }}

{{/* How pods get the view (viewModeOf): those of a Job that an upgrade keeps get it as they did. */}}
{{- define "minicluster.viewMode" -}}
{{- include "minicluster.viewModeOf" (list . (include "minicluster.keptValues" . | fromJson)) -}}
{{- end }}

{{/* image (it is mounted), copy, or none. Arguments: root, the record of the Job; empty for a new one. */}}
{{- define "minicluster.viewModeOf" -}}
{{- $root := first . -}}{{- $record := last . -}}
{{- $mode := $root.Values.flux.container.mode -}}
{{- if $root.Values.flux.container.disable }}none
{{- else if ne $mode "auto" }}{{ $mode }}
{{- else if $record }}{{ get $record "flux.container.mode" }}
{{- else if eq (include "minicluster.supports" (list $root "imageVolumes")) "yes" }}image
{{- else }}copy
{{- end -}}
{{- end }}

{{/*
"true" when the view is copied although Kubernetes can mount images. The container runtimes of the Kubernetes nodes must
be able to, too, and nothing that a user of one namespace may read says whether they are.
*/}}
{{- define "minicluster.mayMountImages" -}}
{{- $chosen := and (eq .Values.flux.container.mode "auto") (not (fromJson (include "minicluster.keptValues" .))) -}}
{{- and $chosen (eq (include "minicluster.viewMode" .) "copy") (eq (include "minicluster.supports" (list . "imageVolumesOnSomeNodes")) "yes") -}}
{{- end }}

{{/* The values that ask for image volumes, each with what to use in its place, as JSON. A kept Job has its view as it is. */}}
{{- define "minicluster.mountedImages" -}}
{{- $found := dict -}}
{{- if and (eq .Values.flux.container.mode "image") (not .Values.flux.container.disable) (not (fromJson (include "minicluster.keptValues" .))) }}
{{- $_ := set $found "flux.container.mode=image" "auto or copy" }}
{{- end }}
{{- range $group := list "containers" "services" }}{{ range $n, $container := get $.Values $group }}{{ range $name, $volume := $container.volumes }}
{{- if $volume.image }}{{ $_ := set $found (printf "%s[%d].volumes.%s.image" $group $n $name) "another source, such as a claim" }}{{ end }}
{{- end }}{{ end }}{{ end -}}
{{- toJson $found -}}
{{- end }}

{{/* Fails if the values need a newer Kubernetes. */}}
{{- define "minicluster.refuseVersion" -}}
{{- $version := .Capabilities.KubeVersion.Version -}}
{{- if eq (include "minicluster.supports" (list . "sidecars")) "no" }}
{{- $since := include "minicluster.since" "sidecars" }}
{{- if ne (include "minicluster.agent" .) "none" }}
{{- fail (printf "autoscaling, metrics and pod.disruptionBudget need Kubernetes %s, this is %s: turn them off" $since $version) }}
{{- end }}
{{- if include "minicluster.sidecars" . | fromJsonArray }}
{{- fail (printf "containers beside the one that runs Flux need Kubernetes %s, this is %s: use services" $since $version) }}
{{- end }}
{{- end }}
{{- if and (eq .Values.gang.kind "kubernetes") (not (include "minicluster.podGroups" .)) }}
{{- $since := include "minicluster.since" "resizableGangs" }}
{{- fail (printf "gang.kind is kubernetes, and this cluster, %s, serves no PodGroups of scheduling.k8s.io: they need Kubernetes %s with the feature gate GenericWorkload, or the version before with GangScheduling too; ask its administrator, or drop gang.kind" $version $since) }}
{{- end }}
{{- if and .Values.pod.resourceClaims (not (include "minicluster.claimVersion" .)) }}
{{- /* without the feature, this Kubernetes would drop the claims, and the pods would start without devices */}}
{{- fail (printf "pod.resourceClaims needs Kubernetes %s, and this cluster, %s, serves no resource.k8s.io: ask its administrator, or drop the claims" (include "minicluster.since" "resourceClaims") $version) }}
{{- end }}
{{- if eq (include "minicluster.supports" (list . "imageVolumesOnSomeNodes")) "no" }}
{{- /* this Kubernetes would drop the volume, and the pods would start without it */}}
{{- range $place, $instead := include "minicluster.mountedImages" . | fromJson }}
{{- fail (printf "%s needs Kubernetes %s, this is %s: use %s" $place (include "minicluster.since" "imageVolumesOnSomeNodes") $version $instead) }}
{{- end }}
{{- end }}
{{- if and .Values.flux.minimalService (eq (include "minicluster.supports" (list . "minimalService")) "no") }}
{{- fail (printf "flux.minimalService needs Kubernetes %s, this is %s: drop it" (include "minicluster.since" "minimalService") $version) }}
{{- end }}
{{- end }}
