#!/bin/sh
# shellcheck disable=SC2154 # set by environment.sh
# The flux that is in PATH: sets Flux's environment, and talks to this pod's broker, or in a job to the job's instance.
set -eu
# shellcheck source=/dev/null
. "$MINICLUSTER_HOME/minicluster/flux-view.sh"
exec "$mc_flux" "$@"
