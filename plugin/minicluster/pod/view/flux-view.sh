# shellcheck shell=sh disable=SC2154 # set by environment.sh
# Flux's environment for a shell in a container. Source this: `. /mnt/flux/flux-view.sh && flux jobs`.

# shellcheck source=/dev/null
. "$MINICLUSTER_HOME/minicluster/environment.sh"
mc_path=$PATH
find_tools
# as the broker has them, for those who come by `kubectl exec`; our other containers choose a folder of their own
if [ -z "${mc_container:-}" ]; then
  # shellcheck source=shell.sh
  . "$MINICLUSTER_HOME/minicluster/shell.sh"
  # shellcheck source=home.sh
  . "$MINICLUSTER_HOME/minicluster/home.sh"
  # another user may own the broker's
  if [ -w "$mc_state" ]; then find_home "$mc_state"; else find_home "$MINICLUSTER_HOME/.own-$(id -u)"; fi
fi
PATH=$mc_path
fluxsocket=$mc_socket_uri
FLUX_URI=${FLUX_URI:-$fluxsocket}
export fluxsocket FLUX_URI
