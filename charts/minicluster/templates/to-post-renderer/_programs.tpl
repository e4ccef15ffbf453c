{{/*
The programs of the pods. The MiniClusters of a release share a ConfigMap with them: Helm keeps a release in one Secret,
which holds 1 MiB. A second one, NAME-slurm, has Slurm's commands and a few others: `kubectl apply` copies each to an
annotation, which holds 256 KiB.
*/}}

{{/*
Name of the ConfigMap with the programs of a Job's pods. A live Job keeps its own; "" for one of an older version, whose
programs are in the ConfigMap of its cluster. A new Job never changes programs that live pods run: if the release has
those of another version, its own are beside them. Arguments: root, name of the Job.
*/}}
{{- define "minicluster.programs" -}}
{{- $root := first . -}}
{{- $job := include "minicluster.kept" . | fromJson -}}
{{- if dig "metadata" "annotations" "minicluster/immutable" "" $job -}}
{{- range dig "spec" "template" "spec" "volumes" list $job -}}
{{- if eq .name "minicluster-config" }}{{ dig "configMap" "name" "" (dig "projected" "sources" (list dict) . | first) }}{{ end -}}
{{- end -}}
{{- else -}}
{{- $name := printf "%s-programs" $root.Release.Name -}}
{{- include "minicluster.readPrograms" (list $root $name) -}}
{{- $name -}}
{{- if not (has (get $root.Release.programs $name).version (list "" $root.Chart.Version)) -}}
-{{ $root.Chart.Version | replace "+" "-" | lower }}
{{- end -}}
{{- end -}}
{{- end }}

{{/* The ConfigMaps with the programs, for a volume; a live Job of an older version has none with Slurm's commands. */}}
{{- define "minicluster.programSources" -}}
{{- $name := include "minicluster.programs" (list . (include "minicluster.jobName" .)) -}}
{{- $live := include "minicluster.keptJob" . -}}
- configMap: {name: {{ $name | quote }}}
{{- if or (eq $live "{}") (contains (printf "%s-slurm" $name) $live) }}
- configMap: {name: {{ printf "%s-slurm" $name | quote }}, optional: true}
{{- end }}
{{- end }}

{{/*
Reads live ConfigMaps with programs: their version, "" when there is none, and their files, as JSON in base64. It is kept in
`Release`, which all charts of a release share, so it is read once for any number of aliases. Arguments: root, name.
*/}}
{{- define "minicluster.readPrograms" -}}
{{- $root := first . -}}{{- $name := last . -}}
{{- if not (hasKey $root.Release "programs") }}{{ $_ := set $root.Release "programs" dict }}{{ end -}}
{{- if not (hasKey $root.Release.programs $name) -}}
{{- $found := include "minicluster.lookup" (list $root "v1" "ConfigMap" $name) | fromJson -}}
{{- $version := dig "metadata" "annotations" "minicluster/version" "" $found -}}
{{- $files := dict -}}
{{- if $version -}}
{{- $slurm := include "minicluster.lookup" (list $root "v1" "ConfigMap" (printf "%s-slurm" $name)) | fromJson -}}
{{- $files = merge (dig "data" dict $found) (dig "data" dict $slurm) -}}
{{- end -}}
{{- $_ := set $root.Release.programs $name (dict "version" $version "files" (ternary ($files | toJson | b64enc) "" (ne $version ""))) -}}
{{- end -}}
{{- end }}

{{/*
The ConfigMaps with the programs of the cluster's Jobs, for the post-renderer (plugin/minicluster/render/postrender.py), as
JSON: name, version and, if live pods run them, the files. One hand-over document of a release has the files.
*/}}
{{- define "minicluster.allPrograms" -}}
{{- $root := . -}}
{{- $all := dict -}}
{{- range include "minicluster.jobNames" . | fromJsonArray -}}
{{- $name := include "minicluster.programs" (list $root .) -}}
{{- $one := get $all $name | default (dict "name" $name "version" $root.Chart.Version) -}}
{{- $job := include "minicluster.kept" (list $root .) | fromJson -}}
{{- /* a suspended Job that changes in place has no pods */ -}}
{{- if and $name (dig "metadata" "annotations" "minicluster/immutable" "" $job) (ne (include "minicluster.change" $root) "place") -}}
{{- include "minicluster.readPrograms" (list $root $name) -}}
{{- $live := get $root.Release.programs $name -}}
{{- with $live.version }}{{ $_ := set $one "version" . }}{{ end -}}
{{- with $live.files }}{{ $_ := set $one "files" . }}{{ $_ := set $live "files" "" }}{{ end -}}
{{- end -}}
{{- $_ := set $all $name $one -}}
{{- end -}}
{{- values $all | toJson -}}
{{- end }}
