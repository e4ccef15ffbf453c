{{/* Upgrades that are refused, beside changed values, which the post-renderer compares. */}}

{{/* Fails if an upgrade asks for what a live cluster can't change. The post-renderer compares the values. */}}
{{- define "minicluster.refuseChange" -}}
{{- if ne (include "minicluster.keptValues" .) "{}" -}}
{{- include "minicluster.refuseLiveChange" . -}}
{{- else if ne (include "minicluster.foundValues" .) "{}" -}}
{{- include "minicluster.refuseReplacement" . -}}
{{- else if .Release.IsUpgrade -}}
{{- include "minicluster.refuseNewJob" . -}}
{{- end -}}
{{- end }}

{{/* Fails if the live Job is being deleted, or if the upgrade turns on the agent or changes the certificate. */}}
{{- define "minicluster.refuseLiveChange" -}}
{{- $name := include "minicluster.name" . -}}
{{- $installed := fromJson (include "minicluster.foundValues" .) -}}
{{- $way := include "minicluster.anotherWay" . -}}
{{- if include "minicluster.isDeleted" . }}
{{- fail (printf "the Job %s is being deleted: wait until it is gone, then upgrade again" $name) }}
{{- end }}
{{- with include "minicluster.lackingAgent" . }}
{{- fail (printf "%s can't be turned on for the live MiniCluster %s, which was installed without it; %s" . $name $way) }}
{{- end }}
{{- if not (or .Values.flux.curveCertSecret (get $installed "flux.curveCertSecret")) }}
{{- $certificate := include "minicluster.liveCertificate" . }}
{{- if not $certificate }}
{{- fail (printf "the Secret %s-curve of the live MiniCluster %s is gone, and its brokers hold the old certificate: restore the Secret, or %s" $name $name $way) }}
{{- end }}
{{- if and .Values.flux.curveCert (ne (trim .Values.flux.curveCert) (trim $certificate)) }}
{{- fail (printf "flux.curveCert can't change on the live MiniCluster %s: its brokers hold another certificate; %s" $name $way) }}
{{- end }}
{{- end }}
{{- end }}

{{/* Fails if an upgrade finds no Job of its name, where it would run finished work again, or mix groups of two clusters. */}}
{{- define "minicluster.refuseNewJob" -}}
{{- $root := . -}}
{{- $name := include "minicluster.name" . -}}
{{- range include "minicluster.groups" . | fromJsonArray }}
{{- $values := include "minicluster.groupValues" (list $root .) | fromJson }}
{{- $group := set (set (set (omit $root "Values") "Values" $values) "group" .name) "cluster" $root }}
{{- if ne (include "minicluster.keptValues" $group) "{}" }}
{{- $changes := include "minicluster.changes" $group | fromJson | keys | sortAlpha | join ", " }}
{{- if or $changes (ne (include "minicluster.foundVersion" $group) $root.Chart.Version) }}
{{- $why := $changes | default (printf "version %s of the chart" (include "minicluster.foundVersion" $group)) | trunc 200 }}
{{- fail (printf "the Job %s-%s is left of the former %s, whose values were others (%s): `kubectl delete job %s-%s`, then upgrade again" $name .name $name $why $name .name) }}
{{- end }}
{{- end }}
{{- end }}
{{- /* with cleanup, Kubernetes removes the Job when it has ended */ -}}
{{- $owner := dig "metadata" "annotations" "meta.helm.sh/release-name" "" (include "minicluster.liveConfigMap" . | fromJson) -}}
{{- if and .Values.cleanup (eq $owner .Release.Name) }}
{{- fail (printf "the Job of %s has ended and was cleaned up, and an upgrade would run its work again: uninstall %s first, or set cleanup to false" $name .Release.Name) }}
{{- end }}
{{- end }}

{{/* Fails if a replacement would lose the queue, or run work again that has ended. */}}
{{- define "minicluster.refuseReplacement" -}}
{{- $root := . -}}
{{- $name := include "minicluster.name" $root -}}
{{- range $path, $texts := include "minicluster.changes" . | fromJson }}
{{- if or (hasPrefix "state." $path) (eq "archive.path" $path) }}
{{- fail (printf "%s is %s, asked is %s: upgrade.replace would lose the queue of %s; leave it as it is, or %s" $path (first $texts) (last $texts) $name (include "minicluster.anotherWay" $root)) }}
{{- end }}
{{- end }}
{{- range dig "status" "conditions" list (include "minicluster.foundJob" $root | fromJson) }}
{{- if and (eq .type "Complete") (eq .status "True") }}
{{- fail (printf "the work of %s has ended, and upgrade.replace would run it again; %s" $name (include "minicluster.anotherWay" $root)) }}
{{- end }}
{{- end }}
{{- end }}

{{/* The end of an error message: what the user can do about an immutable value. */}}
{{- define "minicluster.anotherWay" -}}
uninstall {{ .Release.Name }} first, or install under another name
{{- end }}
