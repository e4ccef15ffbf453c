#!/bin/sh
# shellcheck disable=SC2154 # mc_* come from settings.sh and environment.sh
# Entrypoint of the container that runs Flux. Starts this pod's broker and ends with an exit code that Kubernetes can
# act on:
#   lead    the exit code of the job, or of a snippet that failed
#   worker  0 once the instance has ended by itself, or the exit code of a snippet that failed
#   both    85 when told to stop: the Job replaces the pod; on the lead also when the broker died and can't come back
# It starts few processes before the broker: on a Kubernetes node whose pods all start at once, each one costs time.
set -eu

# shellcheck source=shell.sh
. "$MINICLUSTER_HOME/minicluster/shell.sh"
become_bash "$@"

# a worker's broker that ran for fewer seconds than this has failed to start
RETRY=85 SHORT=2
mc_broker_errors=$MINICLUSTER_HOME/config/run/broker-errors mc_has_started=

main() {
  # flux puts the view's modules into PYTHONPATH; the work gets back the image's own
  MINICLUSTER_PYTHONPATH=${PYTHONPATH:-}
  export MINICLUSTER_PYTHONPATH
  for file in environment time process home secrets config network memory resources archive report leave comeback \
    watch; do
    # shellcheck source=/dev/null
    . "$MINICLUSTER_HOME/minicluster/$file.sh"
  done
  mc_group=${MINICLUSTER_GROUP:-}
  if [ "$JOB_COMPLETION_INDEX$mc_group$mc_joins" = 0 ]; then mc_role='lead'; else mc_role='worker'; fi
  mc_host=$mc_name${mc_group:+-$mc_group}-$JOB_COMPLETION_INDEX
  mkdir -p "$mc_state/run" "$mc_state/curve" "$mc_state/etc/flux/system" "$mc_state/var/lib/flux" "$MINICLUSTER_HOME/bin"
  trap on_stop TERM INT
  trap on_exit EXIT
  # the stop may have come before the trap was set
  [ ! -e "$mc_told_to_stop" ] || exit "$RETRY"
  find_home "$mc_state"
  prepare
  find_memory /sys/fs/cgroup
  run_snippet init.sh
  if ! [ -x "$mc_flux" ]; then
    warn "there is no flux here (${mc_view:-in PATH}): set flux.container.image to a view for this image's distribution"
    exit_with 127
  fi
  run_snippet pre.sh
  check_wrap
  start_munge
  choose_ip_family /proc/net
  use_group
  choose_affinity
  note_gpus
  note_locations
  make_resources || {
    warn "the resource set R can't be made: see the lines above"
    exit_with 1
  }
  version=
  [ "$mc_role" = worker ] || find_version
  if [ -n "$mc_group" ]; then say "$mc_host, group $mc_group of $mc_name"; else
    say "$mc_host of $mc_size (max $mc_max_size)${version:+, Flux $version}"
  fi
  "$mc_role"
}

# Makes the files that the pod's programs expect, and removes those from before a restart of this container.
prepare() {
  set --
  for file in stopping ready working launcher ended exit-code unbound gpus came-back kills report report.problem report.purged \
    undrainer.problem agent.problem memory.problem former-lead.problem; do
    [ ! -e "$mc_state/run/$file" ] || set -- "$@" "$mc_state/run/$file"
  done
  [ $# = 0 ] || rm -f "$@"
  [ "$mc_shell" = bash ] || { mkdir -p "$mc_rc_bin" && ln -sf "$SHELL" "$mc_rc_bin/bash"; }
  ln -sf ../minicluster/flux.sh "$MINICLUSTER_HOME/bin/flux"
  ln -sf ../minicluster/scale.sh "$MINICLUSTER_HOME/bin/minicluster-scale"
  ln -sf minicluster/flux-view.sh "$MINICLUSTER_HOME/flux-view.sh"
  [ -z "$mc_view" ] || ln -sfn "$mc_view" "$MINICLUSTER_HOME/view"
  copy_secret curve/curve.cert
  FLUX_OUTPUT_DIR=$mc_logs
  export FLUX_OUTPUT_DIR
  [ -d "$FLUX_OUTPUT_DIR" ] || mkdir -p "$FLUX_OUTPUT_DIR" 2>/dev/null || true
}

# Sets version to that of Flux, which must be 0.54 or later. On the lead only: workers have the same Flux.
find_version() {
  version=$("$mc_flux" --version | sed -n 's/^commands:[[:space:]]*//p')
  case $version in
  0.[0-9].* | 0.[1-4][0-9].* | 0.5[0-3].*)
    warn "flux-core $version is too old: set flux.container.image to a view that has 0.54 or later"
    exit_with 1
    ;;
  esac
}

# Runs the broker of rank 0 with the work, and ends with the exit code of the work.
lead() {
  run_snippet broker-pre.sh
  tell_of_former_lead
  limit_records
  limit_cache
  use_archive
  use_state_volume
  use_report
  # only the broker of rank 0 can write its log to a file; which of these levels keeps the file small depends on Flux's
  # version
  [ -z "$mc_quiet" ] ||
    mc_start_words="$mc_start_words -o-Slog-level=6 -o-Slog-forward-level=3 -o-Slog-filename=\"\$mc_broker_errors\""
  watch_kills &
  watch=$!
  run_lead
  kill "$watch" 2>/dev/null || true
  keep_archive
  print_report
  if [ -e "$mc_state/run/exit-code" ]; then
    # shellcheck disable=SC2209 # words, not a command
    case $mc_work in
    idle | diagnose) say "the instance was shut down; that Flux aborts rc2, a program that waits for this, is no failure" ;;
    esac
    read -r mc_result <"$mc_state/run/exit-code"
    [ "$mc_result" = 0 ] || warn "the job failed with exit code $mc_result"
    run_snippet post.sh
    exit_with "$mc_result"
  fi
  [ -z "$mc_stopped" ] || exit "$RETRY"
  if has_died; then
    warn "the broker died, exit code $mc_code: the Job replaces this pod"
    exit "$RETRY"
  elif [ -e "$mc_state/run/ready" ]; then
    warn "the instance was shut down before its job ended"
  else
    show_errors
    warn "the broker did not start, exit code $mc_code"
  fi
  exit_with "$((mc_code ? mc_code : 1))"
}

# Runs the broker of another rank, again and again until the instance ends or this pod is told to stop.
worker() {
  run_snippet worker-pre.sh
  if [ -n "$mc_quiet" ]; then
    mc_start_words="$mc_start_words -o-Slog-stderr-level=3"
    exec 2>"$mc_broker_errors"
  fi
  hint=${mc_joins:+"; the log of its lead, $mc_joins, may say why"}
  pause=1
  while :; do
    read -r started _ </proc/uptime
    if [ -n "$mc_joins" ]; then warn_while_alone & else watch_connection /proc/net >/dev/null 2>&1 & fi
    watch=$!
    run_broker
    kill "$watch" 2>/dev/null || true
    tell_kills
    [ -z "$mc_stopped" ] || exit "$RETRY"
    if [ -e "$mc_state/run/ended" ] || [ -n "$mc_complete_workers" ]; then break; fi
    # a broker that can't start must not be restarted without a pause
    ! has_run_since "$started" "$SHORT" || pause=0
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
  # shellcheck disable=SC2034 # for process.sh
  mc_harmless=1
  run_snippet post.sh
  exit 0
}

# Runs a broker to its end, with the words of its initial program. Sets mc_code to its exit code.
run_broker() {
  [ ! -e "$mc_run" ] || rm -rf "$mc_run"
  mkdir "$mc_run"
  [ -z "$mc_timed" ] || begin=$(centiseconds)
  [ -z "$mc_locations" ] || set -- "-o-Svendor.minicluster.locations=$mc_locations" "$@"
  eval "set -- $mc_start_words $mc_restore_words -o-Shostname='$mc_host' \"\$@\""
  shift
  unset FLUX_URI
  # shellcheck disable=SC2034 # for leave.sh
  mc_has_started=1
  run start_flux "$@"
  [ -z "$mc_timed" ] || timed fluxstart "$begin"
}

# with WORDS: becomes flux.
start_flux() {
  # in flux-core 0.82 the attribute hostname took the place of the variable
  FLUX_FAKE_HOSTNAME=$mc_host PATH=$PATH:$mc_rc_bin
  # one heap for the threads of the lead's broker: with one for each it would take half as much memory again
  [ "$mc_role${MALLOC_ARENA_MAX:-}" != lead ] || export MALLOC_ARENA_MAX=1 MINICLUSTER_ARENAS=1
  # for remains.py
  MINICLUSTER_BROKER=$mc_run
  export FLUX_FAKE_HOSTNAME PATH MINICLUSTER_BROKER
  exec "$mc_flux" "$@"
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

# Fails if flux.wrap names a program that this image lacks: Flux would not say which.
check_wrap() {
  [ -z "$mc_wrap" ] || command -v "$mc_wrap" >/dev/null && return 0
  warn "flux.wrap: there is no $mc_wrap in this image: correct the value, or use an image that has it"
  exit_with 127
}

# Warns when the broker of a burst gets no answer from its lead: by itself, the broker waits silently, even if the
# address or the certificate is wrong.
warn_while_alone() {
  sleep 60
  case " $(FLUX_URI=$(broker_uri) "$mc_flux" uptime 2>/dev/null) " in
  *" join "*) warn "no answer for 60 s from the lead, $mc_joins: check address, network and certificate" ;;
  esac
}

main
