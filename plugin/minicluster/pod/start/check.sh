# shellcheck shell=sh disable=SC2034,SC2154 # mc_* come from settings.sh and others, or go to them
# Checks the node before its broker starts (commands.nodeCheck). A worker whose check fails stays out of Flux, and runs
# it again. For the entrypoint.

# exit code of a lead whose check failed
UNFIT_CODE=69
# seconds between two checks: the first pause, which doubles, and the longest
FIRST_PAUSE_SECONDS=10 LONGEST_PAUSE_SECONDS=300
# bytes of a failed check's output in the log, and characters of its last line in messages
SHOWN_BYTES=8192 LINE_CHARACTERS=200
# seconds to tell the lead
TELL_SECONDS=60

# with TEXT: runs the check, if there is one. When it fails, this fails too: it has shown the output, and set mc_unfit to
# the reason, after which the log has TEXT.
is_fit() {
  [ -e "$mc_files/node-check.sh" ] || return 0
  read -r begun _ </proc/uptime
  run run_check
  [ -z "$mc_stopped" ] || exit "$RETRY_CODE"
  [ "$mc_code" != 0 ] || return 0
  # without what a terminal would obey
  output=$(tail -c "$SHOWN_BYTES" "$mc_state/run/check" | tr -d '\000-\010\013-\037\177')
  [ -z "$output" ] || printf '%s\n' "$output" >&3
  last=$(printf '%s\n' "$output" | sed -n "/[^[:space:]]/h;\${x;s/^[[:space:]]*//;s/^\\(.\\{$LINE_CHARACTERS\\}\\).*/\\1/;p;}")
  over=
  ! has_run_since "$begun" "$mc_check_seconds" || over="no end within $mc_check_seconds s"
  mc_unfit="its check failed: ${over:-${last:-exit code $mc_code}}${over:+${last:+: $last}}"
  warn "$mc_host: $mc_unfit$1"
  return 1
}

# Becomes the check, by the rules of snippets and scripts.
run_check() {
  exec >"$mc_state/run/check" 2>&1
  timeout=$(command -v timeout)
  set -- "$mc_files/node-check.sh"
  read -r first <"$1" || true
  case $first in
  '#!'*) ;;
  *)
    [ -z "$mc_strict" ] || set -- -eu "$@"
    [ -z "$mc_strict" ] || [ "$mc_shell" = /bin/sh ] || set -- -o pipefail "$@"
    set -- "$mc_shell" "$@"
    ;;
  esac
  their_world
  exec "$timeout" -s KILL "$mc_check_seconds" "$@"
}

# On the lead: ends the Job, or if the container was killed, leaves the queue to a new pod.
exit_unfit() { if [ -n "$mc_was_killed" ]; then exit "$RETRY_CODE"; else exit_with "$UNFIT_CODE"; fi; }

# On a worker: runs the check until it succeeds.
wait_until_fit() {
  # nothing is to leave: a pod that is told to stop ends at once
  mc_has_started=
  again=$FIRST_PAUSE_SECONDS
  until is_fit "; it runs again in $again s"; do
    tell_unfit
    run sleep "$again"
    again=$((again * 2))
    [ "$again" -le "$LONGEST_PAUSE_SECONDS" ] || again=$LONGEST_PAUSE_SECONDS
  done
}

# Tells the lead why this node stays out, by a drain of its rank. The only way to the lead is a broker. This one runs
# unfit.py in place of Flux's rc1, and ends before Flux takes it for a node.
tell_unfit() {
  folder=$mc_state/run/unfit
  [ ! -e "$folder" ] || rm -rf "$folder"
  mkdir "$folder"
  eval "set -- $mc_start_words -o-Shostname='$mc_host'"
  shift
  for word; do
    shift
    # each may be given once
    case $word in -o-Srundir=* | -o-Slocal-uri=* | --wrap=*) ;; *) set -- "$@" "$word" ;; esac
  done
  MINICLUSTER_UNFIT=$mc_unfit
  export MINICLUSTER_UNFIT
  run start_flux timeout -s KILL "$TELL_SECONDS" "$mc_flux" "$@" \
    "-o-Srundir=$folder" "-o-Slocal-uri=local://$folder/local" \
    "-o-Sbroker.rc1_path='$mc_flux' python '$mc_files/unfit.py'" -o-Sbroker.rc3_path= >/dev/null 2>&1
  unset MINICLUSTER_UNFIT
}
