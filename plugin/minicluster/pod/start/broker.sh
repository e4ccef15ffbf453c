# shellcheck shell=sh disable=SC2034,SC2154 # mc_* come from settings.sh and others, or go to them
# Runs the broker of a pod once, and shows the errors with which it ended. For the entrypoint.

mc_broker_log=$mc_state/run/broker.log mc_has_started=

# Runs a broker to its end, with the words of its initial program. Sets mc_code to its exit code.
run_broker() {
  [ ! -e "$mc_run" ] || rm -rf "$mc_run"
  mkdir "$mc_run"
  [ -z "$mc_timed" ] || begin=$(centiseconds)
  [ -z "$mc_locations" ] || set -- "-o-Svendor.minicluster.locations=$mc_locations" "$@"
  eval "set -- $mc_start_words $mc_restore_words -o-Shostname='$mc_host' \"\$@\""
  shift
  unset FLUX_URI
  mc_has_started=1
  guard_node &
  guard=$!
  run start_flux "$mc_flux" "$@"
  kill "$guard" 2>/dev/null || true
  [ -z "$mc_timed" ] || timed fluxstart "$begin"
}

# with the WORDS of flux: becomes a broker.
start_flux() {
  # Flux runs its rc files in it, which a fish or a csh can't read
  set_aside SHELL
  # in flux-core 0.82 the attribute hostname took the place of the variable
  FLUX_FAKE_HOSTNAME=$mc_host PATH=$PATH:$mc_rc_bin SHELL=$mc_shell
  # one heap for the threads of the lead's broker: with one for each it would take half as much memory again
  [ "$mc_role${MALLOC_ARENA_MAX:-}" != lead ] || export MALLOC_ARENA_MAX=1 MINICLUSTER_ARENAS=1
  # for orphans.py
  MINICLUSTER_BROKER=$mc_run
  export FLUX_FAKE_HOSTNAME PATH SHELL MINICLUSTER_BROKER
  # a file for each start, and the one before: so a broker that starts again and again fills no disk
  [ ! -e "$mc_broker_log" ] || mv -f "$mc_broker_log" "$mc_broker_log.old"
  [ "$mc_role$mc_log_file" != worker1 ] || exec 2>>"$mc_broker_log"
  exec "$@"
}

# Prints which variables of the image or the values Flux has too, because its plugins may need them, after a comma.
also_has() {
  names=
  for name in LD_LIBRARY_PATH LD_PRELOAD LD_AUDIT GLIBC_TUNABLES; do
    eval "[ -z \"\${$name:-}\" ] || names=\"\$names\${names:+, }$name\""
  done
  [ -z "$names" ] || printf '%s' ", and Flux has $names of this container too: if that is why, set it in the command"
}

# Lets the broker write its log to a file. Only that of rank 0 can do so by itself; since flux-core 0.82 it writes all
# levels, so recorder.py keeps the file small. On a worker the file is its stderr, where no work prints.
log_to_file() {
  [ -n "$mc_log_file" ] || return 0
  if [ "$mc_role" = lead ]; then
    mc_start_words="$mc_start_words -o-Slog-forward-level=6 -o-Slog-filename=\"\$mc_broker_log\""
  else mc_start_words="$mc_start_words -o-Slog-stderr-level=6"; fi
}

# Prints the first errors of a broker that ended, if only the file has them. The others follow from these. The lead has
# those of all brokers, and its own count.
show_errors() {
  [ "$mc_role$mc_quiet" != lead ] && [ -s "$mc_broker_log" ] || return 0
  errors=$(sed -E '/\.(debug|info|notice|warning)\[/d' "$mc_broker_log")
  own=
  [ "$mc_role" = worker ] || own=$(printf '%s\n' "$errors" | sed '/\[0]: /!d')
  [ -z "$errors" ] || printf '%s\n' "${own:-$errors}" | sed -n '1,5p' >&3
}
