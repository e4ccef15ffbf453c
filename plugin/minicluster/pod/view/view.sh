#!/bin/sh
# view.sh [all]: init container of the mode `copy`. Copies the parts of the view that running Flux needs, or all of it,
# into the volume that the application's container mounts at the same paths.
set -eu

view=/opt/views/view
if ! [ -e "$view/bin/flux" ]; then
  echo "minicluster: the view image has no $view/bin/flux: set flux.container.image to a Flux view" >&2
  # not 2: a container that is told to stop while the container runtime still starts it also ends with 2
  exit 66
fi
# an earlier try may have left a part
[ ! -e "$MINICLUSTER_VIEW/software" ] || rm -rf "$MINICLUSTER_VIEW/software" "$MINICLUSTER_VIEW/views"
# in an image with nothing but the view, the view's Python may not run
if [ -z "${1:-}" ] && "$view/bin/python3" -ISBc '' 2>/dev/null; then
  exec "$view/bin/python3" -ISB "${0%/*}/view.py" "$MINICLUSTER_VIEW" /opt/software /opt/views
fi
cp -a /opt/software /opt/views "$MINICLUSTER_VIEW"/
