# shellcheck shell=sh disable=SC2154 # set by environment.sh
# Flux's environment for a shell in a container. Source this: `. /mnt/flux/flux-view.sh && flux jobs`.

# shellcheck source=/dev/null
. "$MINICLUSTER_HOME/minicluster/environment.sh"
fluxsocket=$mc_socket_uri
FLUX_URI=${FLUX_URI:-$fluxsocket}
export fluxsocket FLUX_URI
