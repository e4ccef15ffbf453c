# shellcheck shell=sh disable=SC2154 # set by environment.sh
# Source this to use Flux in the cluster's containers: `. /mnt/flux/flux-view.sh && flux jobs`.

# shellcheck source=/dev/null
. "$MINICLUSTER_HOME/minicluster/environment.sh"
fluxsocket=$mc_socket_uri
FLUX_URI=${FLUX_URI:-$fluxsocket}
export fluxsocket FLUX_URI
