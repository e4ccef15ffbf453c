#!/bin/sh
# shellcheck disable=SC2154 # set by environment.sh
# minicluster-scale, as PATH shows it: asks the autoscaler of this cluster, wherever the job that asks runs.
set -eu
unset FLUX_URI
# shellcheck source=/dev/null
. "$MINICLUSTER_HOME/minicluster/flux-view.sh"
exec "$mc_flux" python "$mc_files/scale.py" "$mc_files/agent.json" "$@"
