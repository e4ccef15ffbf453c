#!/bin/sh
# shellcheck disable=SC2154 # mc_joins comes from settings.sh
# Startup probe: the lead is ready when it has its quorum, a worker when its broker has a socket. One run of the probe
# waits for that: on a Kubernetes node whose pods all start at once, a new process in each container each second would cost more
# than Flux.
set -u

TRIES=50 # the probe's timeout is 60 s

is_ready() {
  if [ "$JOB_COMPLETION_INDEX${MINICLUSTER_GROUP:-}$mc_joins" = 0 ]; then [ -e "$run/ready" ]; else
    set -- "$run"/flux/local*
    [ -e "$1" ]
  fi
}

run=$MINICLUSTER_HOME/config/run
# shellcheck source=/dev/null
. "${0%/*}/settings.sh"
# shellcheck source=../view/world.sh
. "${0%/*}/world.sh"
find_tools
try=0
until is_ready; do
  try=$((try + 1))
  [ "$try" -le "$TRIES" ] || exit 1
  sleep 1
done
