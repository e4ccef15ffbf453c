#!/bin/sh
# Startup probe: the lead is ready when the quorum is there, a worker when its broker is.
run=$MINICLUSTER_HOME/config/run
[ -e "$run/ready" ] || { [ "$JOB_COMPLETION_INDEX" != 0 ] && [ -n "$(ls "$run"/flux/local* 2>/dev/null)" ]; }
