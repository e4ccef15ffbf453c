{{/* The PersistentVolumeClaims that the release makes, and the names of all claims. */}}

{{/* Name of the claim of a volume. Arguments: root, name of the volume, volume. */}}
{{- define "minicluster.claimName" -}}
{{- (index . 2).claimName | default (printf "%s-%s" (include "minicluster.name" (index . 0)) (index . 1)) -}}
{{- end }}

{{/* Name of the claim of Flux's state; "" when the state ends with the pod. */}}
{{- define "minicluster.stateClaim" -}}
{{- if or .Values.state.capacity .Values.state.claimName }}{{ include "minicluster.claimName" (list . "state" .Values.state) }}{{ end -}}
{{- end }}

{{/*
The claims that the release makes, as JSON, by name. Each has the volume's fields (asked), its place in the values, the
live claim, and whether several pods share it: the brokers do, and the services have only one pod.
*/}}
{{- define "minicluster.claims" -}}
{{- $root := . -}}{{- $claims := dict -}}
{{- range $group := list "services" "containers" }}
{{- range $index, $container := get $root.Values $group }}
{{- range $name, $volume := $container.volumes }}
{{- if $volume.capacity }}
{{- $place := printf "%s[%d].volumes.%s" $group $index $name }}
{{- $_ := set $claims (include "minicluster.claimName" (list $root $name $volume)) (dict "place" $place "shared" (eq $group "containers") "asked" $volume) }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}
{{- if .Values.state.capacity }}
{{- $_ := set $claims (include "minicluster.stateClaim" .) (dict "place" "state" "shared" true "asked" .Values.state) }}
{{- end -}}
{{- range $name, $claim := $claims }}
{{- $_ := set $claim "live" (include "minicluster.lookup" (list $root "v1" "PersistentVolumeClaim" $name) | fromJson) }}
{{- end -}}
{{- toJson $claims -}}
{{- end }}

{{/*
Access modes of a claim as JSON: those of the values, else of the live claim, else what its pods need. Arguments: root,
claim.
*/}}
{{- define "minicluster.accessModes" -}}
{{- $claim := last . -}}
{{- $several := and $claim.shared (gt (include "minicluster.maxSize" (first .) | int64) 1) -}}
{{- $needed := list (ternary "ReadWriteMany" "ReadWriteOnce" $several) -}}
{{- $claim.asked.accessModes | default (dig "spec" "accessModes" $needed $claim.live) | toJson -}}
{{- end }}

{{/*
The live claims and what the values ask of them, as JSON, for the post-renderer (plugin/minicluster/render/load.py);
"" if there are none.
*/}}
{{- define "minicluster.liveClaims" -}}
{{- $found := list -}}
{{- range $name, $claim := include "minicluster.claims" . | fromJson }}
{{- if $claim.live }}
{{- $spec := $claim.live.spec }}
{{- $was := dict "capacity" (dig "resources" "requests" "storage" "" $spec) "storageClass" (dig "storageClassName" nil $spec) "accessModes" $spec.accessModes }}
{{- $asked := pick $claim.asked "capacity" "storageClass" "accessModes" }}
{{- $found = append $found (dict "name" $name "place" $claim.place "was" $was "asked" $asked "deleted" (hasKey $claim.live.metadata "deletionTimestamp")) }}
{{- end }}
{{- end -}}
{{- with $found }}{{ toJson . }}{{ end -}}
{{- end }}
