# shellcheck shell=sh disable=SC2034,SC2154 # mc_* come from settings.sh and others, or go to them
# A worker: the broker of another rank, again and again. For the entrypoint.

# seconds before which a broker that ended has failed to start
SHORT_SECONDS=2
# seconds in which a pod learns that it is to stop, too
LOST_SECONDS=5

# Runs the broker of another rank, again and again until the instance ends or this pod is told to stop.
worker() {
  run_snippet worker-pre.sh
  log_to_file
  hint=${mc_joins:+"; the log of its lead, $mc_joins, may say why"}
  pause=1
  while [ ! -e "$mc_state/run/ended" ]; do
    wait_until_fit
    read -r started _ </proc/uptime
    [ -z "$mc_notify" ] || rm -f "$mc_state/run/lost"
    if [ -n "$mc_joins" ]; then warn_while_alone & else watch_connection /proc/net >/dev/null 2>&1 & fi
    watch=$!
    run_broker
    kill "$watch" 2>/dev/null || true
    tell_kills
    # a lead that was told to stop ends the instance, but not the work
    if [ -n "$mc_notify" ] && [ "$mc_code" = 0 ]; then tell_lost & fi
    [ -z "$mc_stopped" ] || exit "$RETRY_CODE"
    if [ -e "$mc_state/run/ended" ] || [ -n "$mc_complete_workers" ]; then break; fi
    # a broker that can't start must not be restarted without a pause
    ! has_run_since "$started" "$SHORT_SECONDS" || pause=0
    if [ "$mc_code" = 0 ]; then say "the instance ended: this broker starts again"; else
      show_errors
      if [ "$pause" = 0 ]; then wait=''; else wait=" in $pause s"; fi
      warn "the broker ended with exit code $mc_code and starts again$wait$hint"
    fi
    [ "$pause" = 0 ] || run sleep "$pause"
    if [ "$pause" = 0 ]; then pause=1; elif [ "$pause" -lt 8 ]; then pause=$((pause * 2)); fi
  done
  mc_result=0
  # the work is done: a post.sh that fails here must not fail the Job, which would end the lead before its result
  # is known
  mc_harmless=1
  run_snippet post.sh
  exit 0
}

# On the first worker, once in a broker's life: tells that the lead is lost, unless this pod is to stop, or the instance
# ends, too.
tell_lost() {
  [ "$JOB_COMPLETION_INDEX$mc_group" = 1 ] && [ ! -e "$mc_state/run/lost" ] || return 0
  : >"$mc_state/run/lost"
  sleep "$LOST_SECONDS"
  [ -e "$MINICLUSTER_HOME/told-to-stop" ] || [ -e "$mc_state/run/ended" ] ||
    tell lost 0 || true
}

# Warns when the broker of a burst gets no answer from its lead: by itself, the broker waits silently, even if the
# address or the certificate is wrong.
warn_while_alone() {
  sleep 60
  case " $(FLUX_URI=$(broker_uri) "$mc_flux" uptime 2>/dev/null) " in
  *" join "*) warn "no answer for 60 s from the lead, $mc_joins: check address, network and certificate" ;;
  esac
}
