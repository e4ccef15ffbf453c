{{/* Warnings of the notes: what the values ask the user to know. */}}
{{- define "minicluster.warnings" -}}
{{- range $claim, $fields := include "minicluster.claims" . | fromJson }}
{{- $modes := include "minicluster.accessModes" (list $ $fields) | fromJsonArray }}
{{- if and $fields.shared (gt (include "minicluster.maxSize" $ | int64) 1) (eq (join "," $modes) "ReadWriteOnce") }}

WARNING: the claim {{ $claim }} of {{ $fields.place }} is ReadWriteOnce: all pods must run on one Kubernetes node.
{{- end }}
{{- end }}
{{- range $place, $container := concat .Values.containers .Values.services }}
{{- range $alias, $name := dict "preCommand" "pre" "preWorker" "workerPre" "preBroker" "brokerPre" }}
{{- if hasKey ($container.commands | default dict) $alias }}

WARNING: commands.{{ $alias }} is another name of commands.{{ $name }}.
{{- end }}
{{- end }}
{{- if or $container.fluxUser $container.fluxuser (hasKey ($container.commands | default dict) "runFluxAsRoot") }}

WARNING: fluxUser and commands.runFluxAsRoot have no effect: everything runs as the pod's user (pod.securityContext).
{{- end }}
{{- end }}
{{- $runner := fromJson (include "minicluster.runner" .) }}
{{- $limit := toString (dig "resources" "limits" "cpu" "" $runner) }}
{{- $cpus := ternary (divf (trimSuffix "m" $limit | float64) 1000) (float64 $limit) (hasSuffix "m" $limit) }}
{{- if and (regexMatch "^[0-9.]+m?$" $limit) $runner.cores (gt (float64 $runner.cores) $cpus) }}

WARNING: Flux has {{ int64 $runner.cores }} cores of a node (cores), which share the time of {{ $limit }} CPUs (resources.limits.cpu).
{{- end }}
{{- if and .Values.flux.brokerConfig (not (regexMatch `\bhosts\b` .Values.flux.brokerConfig)) (gt (include "minicluster.maxSize" . | int64) 1) }}

WARNING: flux.brokerConfig has no bootstrap.hosts, so each broker is an instance of its own: give the hosts.
{{- end }}
{{- range list "fcfs" "easy" }}
{{- if regexMatch (printf `(?m)^\s*"?queue-policy"?\s*=\s*["']%s["']` .) $.Values.flux.brokerConfig }}

WARNING: flux.brokerConfig has the queue-policy {{ . }}, by which Fluxion may fail a job whose nodes are not up: use conservative.
{{- end }}
{{- end }}
{{- if and (eq .Values.flux.scheduler.queuePolicy "easy") (not .Values.flux.brokerConfig) }}

WARNING: flux.scheduler.queuePolicy is easy, by which Fluxion may fail a job whose nodes are not up: use conservative.
{{- end }}
{{- range include "minicluster.uncountedDevices" . | fromJsonArray }}

WARNING: {{ . }}.
{{- end }}
{{- if and .Values.kueue.elastic (not .Values.kueue.queueName) (not (hasKey .Values.jobLabels "kueue.x-k8s.io/queue-name")) }}

WARNING: kueue.elastic is true without kueue.queueName: it has an effect only if Kueue has a default queue in this namespace.
{{- end }}
{{- if and (include "minicluster.isQueued" .) (not (and .Values.kueue.elastic .Values.autoscaling.enabled)) }}

WARNING: Kueue 0.19 or later suspends all pods when one is not ready for 30 minutes, as after the loss of a Kubernetes node{{ if not (or .Values.state.capacity .Values.state.claimName .Values.archive.path) }}, and the queue of jobs is lost{{ end }}. With kueue.elastic and autoscaling such pods are given up first; otherwise ask its administrator for waitForPodsReady.recoveryTimeout: 0s.
{{- end }}
{{- if hasKey .Values.flux "leadBroker" }}

WARNING: flux.leadBroker is another name of flux.bursting.leadBroker.
{{- end }}
{{- if dig "hostlist" "" (.Values.flux.leadBroker | default .Values.flux.bursting.leadBroker | default dict) }}

WARNING: {{ ternary "flux.leadBroker" "flux.bursting.leadBroker" (hasKey .Values.flux "leadBroker") }}.hostlist is another name of flux.bursting.hostlist.
{{- end }}
{{- end }}
