#!/bin/sh
# Init container of the mode `copy`: copies the view once, into the volume that the application's container mounts at
# the same paths.
set -eu

if ! [ -e /opt/views/view/bin/flux ]; then
  echo "minicluster: the view image has no /opt/views/view/bin/flux: set flux.container.image to a Flux view" >&2
  exit 2
fi
cp -a /opt/software /opt/views "$MINICLUSTER_VIEW"/
