# shellcheck shell=sh disable=SC2154 # mc_* come from settings.sh and environment.sh
# What a pod does when it is told to stop. For the entrypoint.

# On SIGTERM: running jobs get time to end, then the broker is stopped. The Job replaces this pod, whatever the broker's
# exit code is.
on_stop() {
  # ignores a second signal; with '' in place of : the children would ignore it too
  trap : TERM INT
  if [ -z "$mc_has_started" ]; then
    # on_exit must not report the interrupted snippet as failed
    # shellcheck disable=SC2034 # for process.sh
    mc_snippet=
    exit "$RETRY_CODE"
  fi
  leave
  : >"$MINICLUSTER_HOME/config/run/stopping"
  stop
}

# Lets no more jobs start, and waits for those that run, within the grace period.
leave() {
  read -r now _ </proc/uptime
  # the grace period began when the hook wrote its file, which is empty if the disk is full
  { read -r told <"$mc_told_to_stop"; } 2>/dev/null || told=
  case $told in '' | *[!0-9.]*) told=$now ;; esac
  # if this container starts again, it is not told to stop
  rm -f "$mc_told_to_stop"
  uri=$(broker_uri) || stop_without_socket || return 0
  seconds=$((mc_leave_seconds + mc_kill_seconds + 1 - ${now%.*} + ${told%.*}))
  # if the lead leaves and keeps no state, the queue is lost
  if [ "$mc_role" = worker ] || keeps_queue; then queue=kept; else queue=lost; fi
  if [ "$mc_role" = lead ]; then archive=$mc_archive report=$mc_report_path; else archive='' report=''; fi
  # leave.py's errors are printed, unless the instance has ended meanwhile: then no broker can answer it
  FLUX_URI=$uri timeout "$((seconds > 1 ? seconds : 1))" "$mc_flux" python "$mc_files/leave.py" "$mc_role" \
    "$told" "$now" "$mc_leave_seconds" "$mc_kill_seconds" "$mc_end_seconds" "$mc_state/run" "$mc_on_stop" "$queue" "$archive" \
    "$report" >&3 2>"$mc_state/run/leave" ||
    [ -e "$mc_state/run/exit-code" ] || [ -e "$mc_state/run/ended" ] || cat "$mc_state/run/leave" >&3
}

# Tells a broker that has no socket yet to stop, again and again: it misses signals while it starts. Fails when the
# broker has ended; sets uri when it has a socket.
stop_without_socket() {
  tries=50
  while [ -n "$mc_child" ] && { read -r _ _ state _ <"/proc/$mc_child/stat"; } 2>/dev/null && [ "$state" != Z ]; do
    kill -TERM "$mc_child" 2>/dev/null || true
    uri=$(broker_uri) && return 0
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] || break
    sleep 0.1
  done
  return 1
}

# Prints the URI of this pod's broker. With flux.disableSocket the socket has a name of Flux's own.
broker_uri() {
  for socket in "$mc_run"/local*; do
    [ ! -S "$socket" ] || { echo "local://$socket" && return 0; }
  done
  return 1
}
