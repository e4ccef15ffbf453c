#!/bin/sh
# start.sh PROGRAM [WORD…]: starts one of our programs from a copy of the ConfigMap's files. The files of a live
# ConfigMap change, with a new size or when newer manifests are applied, and an old program must not meet new files.
set -eu
# shellcheck source=../view/world.sh
. "${0%/*}/world.sh"
our_world

tools='cp ln mkdir rm sleep'
[ "$1" != entrypoint.sh ] || tools="$tools cat chmod date id mv sed tail timeout touch tr wc"
for tool in $tools; do
  command -v "$tool" >/dev/null && continue
  echo "minicluster: there is no $tool in this image (PATH $PATH): use one that has the usual tools, or busybox" >&2
  exit 127
done

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
