#!/bin/sh
# shellcheck disable=SC2154 # set by environment.sh
# flux as PATH shows it: Flux's own environment, and this pod's broker unless a job is in another.
set -eu
# shellcheck source=/dev/null
. "$MINICLUSTER_HOME/minicluster/flux-view.sh"
exec "$mc_flux" "$@"
