#!/bin/sh
# shellcheck disable=SC2154 # set by environment.sh
# The flux that is in PATH: sets Flux's environment, and talks to this pod's broker, or in a job to the job's instance.
set -eu
# shellcheck source=/dev/null
. "$MINICLUSTER_HOME/minicluster/flux-view.sh"
# Flux shows how it ends the program that waits for a shutdown as a failure
case ${1:-}${FLUX_URI#"$mc_socket_uri"},$mc_work in
shutdown,idle | shutdown,diagnose)
  "$mc_flux" "$@"
  echo "minicluster: the cluster is shut down; \"rc2 aborted\" above is how Flux ends a program that waits for this" >&2
  exit
  ;;
esac
# what flux runs as it is, in our environment, needs all of it; for tasks minicluster.lua gives it back
# shellcheck disable=SC2086 # into names
case ${1:-} in exec | proxy) ;; *) set_aside $mc_of_python ;; esac
exec "$mc_flux" "$@"
