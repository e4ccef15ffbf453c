#!/bin/sh
# instance_jobs.sh [begin | ask MOST RANK=JOB=SOCKET…]: tells of the jobs inside of a job that is an instance of Flux
# (inner_jobs.py). With words it asks the instances whose sockets are on this rank, and prints what they say. Without, it
# is the rc3 of an instance (flux-broker): rank 0 adds that to the outermost job, beside its output; Flux's own rc3 follows.
# With begin it is the rc1 of an older one of root, whose history of jobs fails for each (flux-core#5475).
set -f

# Prints two kinds of lines after the path of the instance: how many jobs there were, and a job each, of MOST the newest.
tell() {
  printf '%s %s\n' "$1" "$(flux job stats)"
  flux job list -a -c "$2" | sed "s|^|$1 |"
}

if [ "${1:-}" = begin ]; then
  eval "$(flux config builtin rc1_path)" || exit
  [ "$(flux getattr rank)" != 0 ] || flux jobtap remove .history
  exit
fi
if [ "${1:-}" = ask ]; then
  most=$2 rank=$(flux getattr rank)
  shift 2
  for word; do
    case $word in "$rank"=*) word=${word#*=} && (export FLUX_URI="local://${word#*=}" && tell "${word%%=*}" "$most") ;; esac
  done
  exit 0
fi
if [ "$(flux getattr rank)" = 0 ] && path=$(flux getattr jobid 2>/dev/null); then
  most=1000 outermost=$path up=--parent
  # shellcheck disable=SC2086 # into words
  while above=$(flux $up getattr jobid 2>/dev/null); do
    # many of those in others may end
    most=100 outermost=$above path=$above/$path up="$up --parent"
  done
  # shellcheck disable=SC2086
  tell "$path" "$most" | flux $up kvs put --append --raw \
    --namespace="job-$(flux job id --to=dec "$outermost")" minicluster_jobs=- 2>/dev/null
fi
eval "$(flux config builtin rc3_path)"
