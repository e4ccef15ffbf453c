{{/*
The API version of an object until the post-renderer has handled it (plugin/minicluster/render/stream.py). No API server
has the group: without the post-renderer nothing is created, and the error says what to add. Helm 3 hands over no hooks,
which so have their own. Argument: the API version in Kubernetes.
*/}}
{{- define "minicluster.apiVersion" -}}
post-renderer-required.add--post-renderer-minicluster/{{ replace "/" "." . }}
{{- end }}
