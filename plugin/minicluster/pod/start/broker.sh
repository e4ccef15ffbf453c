# shellcheck shell=sh disable=SC2034,SC2154 # mc_* come from settings.sh and others, or go to them
# Runs the broker of a pod once, and shows the errors with which it ended. For the entrypoint.

mc_broker_errors=$mc_state/run/broker-errors mc_has_started=

# Runs a broker to its end, with the words of its initial program. Sets mc_code to its exit code.
run_broker() {
  [ ! -e "$mc_run" ] || rm -rf "$mc_run"
  mkdir "$mc_run"
  [ -z "$mc_timed" ] || begin=$(centiseconds)
  [ -z "$mc_locations" ] || set -- "-o-Svendor.minicluster.locations=$mc_locations" "$@"
  eval "set -- $mc_start_words $mc_restore_words -o-Shostname='$mc_host' \"\$@\""
  shift
  unset FLUX_URI
  mc_has_started=1 guard=
  [ -z "$mc_reserve" ] || { guard_memory & guard=$!; }
  run start_flux "$mc_flux" "$@"
  [ -z "$guard" ] || kill "$guard" 2>/dev/null || true
  [ -z "$mc_timed" ] || timed fluxstart "$begin"
}

# with the WORDS of flux: becomes a broker.
start_flux() {
  # in flux-core 0.82 the attribute hostname took the place of the variable
  FLUX_FAKE_HOSTNAME=$mc_host PATH=$PATH:$mc_rc_bin
  # one heap for the threads of the lead's broker: with one for each it would take half as much memory again
  [ "$mc_role${MALLOC_ARENA_MAX:-}" != lead ] || export MALLOC_ARENA_MAX=1 MINICLUSTER_ARENAS=1
  # for remains.py
  MINICLUSTER_BROKER=$mc_run
  export FLUX_FAKE_HOSTNAME PATH MINICLUSTER_BROKER
  exec "$@"
}

# With logging.quiet, prints the first errors of a broker that ended: they are not in the log. The others follow from
# these. The lead has those of all brokers, and its own count.
show_errors() {
  [ -n "$mc_quiet" ] && [ -s "$mc_broker_errors" ] || return 0
  errors=$(sed -e '/\.debug\[/d' -e '/\.info\[/d' -e '/\.notice\[/d' "$mc_broker_errors")
  own=
  [ "$mc_role" = worker ] || own=$(printf '%s\n' "$errors" | sed '/\[0]: /!d')
  printf '%s\n' "${own:-$errors}" | sed -n '1,5p' >&3
  : >"$mc_broker_errors"
}
