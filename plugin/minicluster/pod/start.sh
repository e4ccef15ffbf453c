#!/bin/sh
# start.sh PROGRAM [WORD…]: starts a program of ours from a copy of the ConfigMap's files as they are now. New ones reach
# pods that run: at a new size, or when newer manifests are applied. An old program must not meet them.
set -eu

files=$MINICLUSTER_HOME/minicluster
if ! [ -e "$files" ]; then
  # the containers of a pod start at once, each with a copy; that of the first is everybody's
  copy=$MINICLUSTER_HOME/.files-${2:-}
  rm -rf "$copy"
  (umask 022 && mkdir "$copy" && cp "$MINICLUSTER_HOME"/configmap/* "$copy")
  # the agent looks at its settings again and again
  ln -sf ../configmap/agent.json "$copy/agent.json"
  ln -sn "${copy##*/}" "$files" 2>/dev/null || [ -e "$files" ]
fi
program=$1
shift
exec /bin/sh "$files/$program" "$@"
