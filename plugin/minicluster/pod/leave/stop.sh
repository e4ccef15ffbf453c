#!/bin/sh
# stop.sh [TEXT]: preStop hook of the runner. Leaves the time of the stop, in seconds of this machine's uptime, for the
# entrypoint: a signal is lost on a process 1 that has no handler yet, and ends one that the container runtime still
# starts. Then it runs the user's own hook.
set -u

read -r now _ </proc/uptime
echo "$now" >"$MINICLUSTER_HOME/told-to-stop" || true
[ $# = 0 ] || exec /bin/sh -c "$1"
