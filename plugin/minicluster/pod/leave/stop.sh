#!/bin/sh
# stop.sh [TEXT]: preStop hook of the runner. Writes the time of the stop, in seconds of this machine's uptime, to a
# file for the entrypoint. A signal alone is not enough: process 1 ignores it until it has a handler, and while the
# container runtime still starts the container, the signal ends it. Then this runs the user's own hook.
set -u

read -r now _ </proc/uptime
echo "$now" >"$MINICLUSTER_HOME/told-to-stop" || true
[ $# = 0 ] || exec /bin/sh -c "$1"
