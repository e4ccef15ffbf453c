#!/bin/sh
# view.sh [all]: init container of the mode `copy`. Copies the view once, into the volume that the application's
# container mounts at the same paths: what running Flux needs, or all of it.
set -eu

view=/opt/views/view
if ! [ -e "$view/bin/flux" ]; then
  echo "minicluster: the view image has no $view/bin/flux: set flux.container.image to a Flux view" >&2
  # not 2, with which a container ends that is told to stop while the container runtime still starts it
  exit 66
fi
# what an earlier try left
[ ! -e "$MINICLUSTER_VIEW/software" ] || rm -rf "$MINICLUSTER_VIEW/software" "$MINICLUSTER_VIEW/views"
# an image that has no more than the view's files may lack what its Python needs
if [ -z "${1:-}" ] && "$view/bin/python3" -ISBc '' 2>/dev/null; then
  exec "$view/bin/python3" -ISB "${0%/*}/view.py" "$MINICLUSTER_VIEW" /opt/software /opt/views
fi
cp -a /opt/software /opt/views "$MINICLUSTER_VIEW"/
