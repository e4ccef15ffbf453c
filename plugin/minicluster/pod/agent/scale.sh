#!/bin/sh
# shellcheck disable=SC2154 # set by environment.sh
# The minicluster-scale that is in PATH: asks the autoscaler of this cluster, from any job in it.
set -eu
# a job may be in an instance of its own, and has a KVS namespace of its own
unset FLUX_URI FLUX_KVS_NAMESPACE
# shellcheck source=/dev/null
. "$MINICLUSTER_HOME/minicluster/flux-view.sh"
our_world
exec "$mc_flux" python "$mc_files/scale.py" "$mc_files/agent.json" "$@"
