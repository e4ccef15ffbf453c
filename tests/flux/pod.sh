#!/bin/sh
# pod.sh COMMAND…: makes the mounts of a pod in namespaces of its own and becomes COMMAND, the pod's first process.
# POD is a folder with bin, config, curve and state; beside it is `claim` where the cluster's state is on a claim.
# POD_HIDE names commands that the image lacks, POD_SH the shell that is its sh; POD_READ_ONLY makes the root read-only.
set -eu

mount -t tmpfs -o mode=0755 tmpfs /mnt
mkdir /mnt/bin /mnt/flux
mount --bind "$POD/bin" /mnt/bin
mount --bind "$POD/state" /mnt/flux
mkdir /mnt/flux/minicluster /mnt/flux/curve
for folder in minicluster curve; do
  mount --bind "$POD/$folder" "/mnt/flux/$folder"
  mount -o remount,bind,ro "/mnt/flux/$folder"
done
[ ! -d "$POD/../claim" ] || { mkdir -p /mnt/flux/state && mount --bind "$POD/../claim" /mnt/flux/state; }
[ ! -e "$POD/hosts" ] || mount --bind "$POD/hosts" /etc/hosts
# last of the mounts from $POD, which may be below it
mount -t tmpfs -o mode=1777 tmpfs /tmp
mkdir -m 1777 /tmp/home
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
[ -z "$POD_SH" ] || mount --bind "$(readlink -f "$(command -v "$POD_SH")")" "$(readlink -f /bin/sh)"
for command in $POD_HIDE; do
  path=$(command -v "$command") || continue
  mount --bind /dev/null "$(readlink -f "$path")"
done
[ -z "$POD_READ_ONLY" ] || { mount -o remount,bind,ro / && mount -o remount,ro /tmp; }
unset POD POD_HIDE POD_SH POD_READ_ONLY
exec "$@"
