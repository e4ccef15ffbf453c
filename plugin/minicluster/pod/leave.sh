# shellcheck shell=sh disable=SC2154 # mc_* come from settings.sh and environment.sh
# What a pod does when it is told to stop. For the entrypoint.

# On SIGTERM: running jobs get time to end, then the broker is stopped. Whatever its exit code is, the Job replaces
# this pod.
on_stop() {
  # a second signal changes nothing; ignored by '', it would be ignored by the children too
  trap : TERM INT
  leave
  : >"$MINICLUSTER_HOME/config/run/stopping"
  stop
}

# Accepts no more jobs and waits for those that run, within the grace period.
leave() {
  uri=$(broker_uri) || return 0
  # starts the lead's undrainer
  [ "$mc_role" = lead ] || FLUX_URI=$uri timeout 5 "$mc_flux" event pub minicluster.leave >/dev/null 2>&1 || true
  # the queue is lost with a lead that does not keep it
  if [ "$mc_role" = lead ] && [ -z "$mc_archive$mc_state_volume" ]; then set -- lost; else set --; fi
  # its errors are printed unless the instance has ended meanwhile: then no broker can answer
  FLUX_URI=$uri timeout $((mc_leave_seconds + mc_kill_seconds + 1)) "$mc_flux" python "$mc_files/leave.py" \
    "$mc_role" "$mc_leave_seconds" "$mc_kill_seconds" "$mc_state/run" "$mc_on_stop" "$@" >&3 2>"$mc_state/run/leave" ||
    [ -e "$mc_state/run/exit-code" ] || [ -e "$mc_state/run/ended" ] || cat "$mc_state/run/leave" >&3
}

# Prints the URI of this pod's broker. With flux.disableSocket the socket has a name of Flux's own.
broker_uri() {
  for socket in "$mc_run"/local*; do
    [ ! -S "$socket" ] || { echo "local://$socket" && return 0; }
  done
  return 1
}
