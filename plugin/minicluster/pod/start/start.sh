#!/bin/sh
# start.sh PROGRAM [WORD…]: starts one of our programs from a copy of the ConfigMap's files. The files of a live
# ConfigMap change, with a new size or when newer manifests are applied, and an old program must not meet new files.
set -eu

files=$MINICLUSTER_HOME/minicluster
if ! [ -e "$files" ]; then
  # the containers of a pod start at the same time, and each makes a copy; all use the copy that is linked first
  copy=$MINICLUSTER_HOME/.files-${2:-}
  [ ! -e "$copy" ] || rm -rf "$copy"
  (umask 022 && mkdir "$copy" && cp "$MINICLUSTER_HOME"/configmap/* "$copy")
  # the agent reads its settings in each period
  [ ! -e "$copy/agent.json" ] || ln -sf ../configmap/agent.json "$copy/agent.json"
  if ! ln -sn "${copy##*/}" "$files" 2>/dev/null; then
    [ -e "$files" ]
    rm -rf "$copy"
  fi
fi
program=$1
shift
exec /bin/sh "$files/$program" "$@"
