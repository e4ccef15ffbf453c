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
  # what Kubernetes replaces at once; a machine that is no pod has a plain folder
  source=$MINICLUSTER_HOME/configmap/..data
  [ -e "$source" ] || source=${source%/*}
  # in memory: to make 130 files on a disk whose files were just deleted takes a tenth of a second. A live Job of an older
  # version has no such volume
  copy=files/.files-${2:-}
  [ -d "$MINICLUSTER_HOME/files" ] || copy=${copy#*/}
  # of a copy that the memory has lost
  [ ! -h "$files" ] || rm -f "$files"
  # the containers of a pod start at the same time, and each makes a copy; all use the copy that is linked first
  copy=$MINICLUSTER_HOME/$copy
  [ ! -e "$copy" ] || rm -rf "$copy"
  (umask 022 && exec cp -RL "$source" "$copy")
  # the agent reads its settings in each period
  [ ! -e "$copy/agent.json" ] || ln -sf "$MINICLUSTER_HOME/configmap/agent.json" "$copy/agent.json"
  if ! ln -sn "${copy#"$MINICLUSTER_HOME/"}" "$files" 2>/dev/null; then
    [ -e "$files" ]
    rm -rf "$copy"
  fi
fi
program=$1
shift
exec /bin/sh "$files/$program" "$@"
