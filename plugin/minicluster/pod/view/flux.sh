#!/bin/sh
# shellcheck disable=SC2154 # set by environment.sh
# The flux that is in PATH: has Flux's environment, and talks to this pod's broker unless the job is in another instance.
set -eu
# shellcheck source=/dev/null
. "$MINICLUSTER_HOME/minicluster/flux-view.sh"
exec "$mc_flux" "$@"
