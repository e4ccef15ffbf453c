#!/bin/sh
# shellcheck disable=SC2154 # set by environment.sh
# minicluster-scale, as PATH shows it: asks the autoscaler of this cluster, wherever the job that asks runs.
set -eu
# a job may be in an instance of its own, and has a KVS namespace of its own
unset FLUX_URI FLUX_KVS_NAMESPACE
# shellcheck source=/dev/null
. "$MINICLUSTER_HOME/minicluster/flux-view.sh"
exec "$mc_flux" python "$mc_files/scale.py" "$mc_files/agent.json" "$@"
