#!/bin/sh
# shellcheck disable=SC2154 # mc_* come from settings.sh
# Initial program of the lead's broker, started once the quorum is there: submits the work, waits for its
# end and leaves its exit code. Without work it waits for `flux shutdown`.
set -eu
# shellcheck source=environment.sh
. "$MINICLUSTER_HOME/minicluster/environment.sh"
# shellcheck source=time.sh
. "$mc_files/time.sh"

# The instance ends by itself: the workers need not come back.
finish() {
  trap '' HUP
  # a lead that was told to stop leaves no word: whoever replaces it starts afresh
  [ ! -e "$mc_state/run/stopping" ] || exit "$1"
  echo "$1" >"$mc_state/run/exit-code"
  [ "$mc_max_size" = 1 ] ||
    timeout 10 "$mc_flux" exec -q -r all -x 0 sh -c ": >'$mc_state/run/ended'" >/dev/null 2>&1 || true
  exit "$1"
}

idle() {
  trap 'finish 0' HUP
  while :; do
    sleep 3600 &
    wait $! || true
  done
}

# Submits the command: a file's text for a shell, a script, or the words of a list.
work() {
  if command -v bash >/dev/null; then shell='bash'; else shell='sh'; fi
  if [ -e "$mc_files/command" ]; then
    set -- "$shell" -c "$(cat "$mc_files/command")"
  elif [ -n "$mc_script_has_interpreter" ]; then
    set -- "$mc_files/script"
  elif [ -e "$mc_files/script" ]; then
    set -- "$shell" "$mc_files/script"
  else
    eval "set -- $mc_command_words"
  fi
  [ -z "$MINICLUSTER_PYTHONPATH" ] || set -- "--env=PYTHONPATH=$MINICLUSTER_PYTHONPATH" "$@"
  eval "set -- $mc_submit_words --env=-PYTHONPATH \"\$@\""
  [ -n "$mc_quiet" ] || printf 'minicluster: %s\n' "$mc_submit_words" >&2
  begin=$(centiseconds)
  code=0
  "$@" || code=$?
  [ -z "$mc_timed" ] || timed fluxsubmit "$begin"
  finish "$code"
}

: >"$mc_state/run/ready"
if [ -n "$mc_command_words" ] || [ -e "$mc_files/command" ] || [ -e "$mc_files/script" ]; then work; else idle; fi
