#!/bin/sh
# shellcheck disable=SC2154 # mc_joins comes from settings.sh
# Startup probe: the lead is ready when it has its quorum, a worker when its broker has a socket.

# shellcheck source=/dev/null
. "$MINICLUSTER_HOME/minicluster/settings.sh"
run=$MINICLUSTER_HOME/config/run
if [ "$JOB_COMPLETION_INDEX" = 0 ] && [ -z "$mc_joins" ]; then
  [ -e "$run/ready" ]
else
  [ -n "$(ls "$run"/flux/local* 2>/dev/null)" ]
fi
