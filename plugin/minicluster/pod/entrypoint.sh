#!/bin/sh
# shellcheck disable=SC2154,SC2329,SC3067 # mc_* come from settings.sh and environment.sh, functions run by trap; -O is
# in every shell there is
# Entrypoint of the container that runs Flux: starts this pod's broker and ends with an exit code that
# Kubernetes can act on:
#   lead    the job's own exit code, or a failing snippet's
#   worker  0 once the instance ended by itself, or a failing snippet's exit code
#   both    85 when told to stop or the broker died: the Job replaces the pod
set -eu

# Snippets may be written for bash: be bash where the image has it.
if [ -z "${BASH_VERSION:-}" ] && command -v bash >/dev/null; then exec bash "$0"; fi

RETRY=85

# Told to stop: what runs may end first. Then the broker is stopped, and whatever it exits with, this pod must
# come back.
on_stop() {
  # once is enough; ignored, it would be by the children too
  trap : TERM INT
  leave
  : >"$MINICLUSTER_HOME/config/run/stopping"
  stop
}

# Takes no more jobs and waits for those there are, within the grace period.
leave() {
  uri=$(broker_uri) || return 0
  # wakes the lead's keeper
  [ "$mc_role" = lead ] || FLUX_URI=$uri timeout 5 "$mc_flux" event pub minicluster.leave >/dev/null 2>&1 || true
  # when the instance ends by itself meanwhile there is nobody to ask any more
  FLUX_URI=$uri timeout $((mc_leave_seconds + mc_kill_seconds + 1)) "$mc_flux" python "$mc_files/leave.py" \
    "$mc_role" "$mc_leave_seconds" "$mc_kill_seconds" "$mc_state/run" >&3 2>"$mc_state/run/leave" ||
    [ -e "$mc_state/run/exit-code" ] || [ -e "$mc_state/run/ended" ] || cat "$mc_state/run/leave" >&3
}

# The socket of this pod's broker; flux.disableSocket gives it another name.
broker_uri() {
  for socket in "$mc_run"/local*; do
    [ ! -S "$socket" ] || { echo "local://$socket" && return 0; }
  done
  return 1
}

prepare() {
  mkdir -p "$mc_run" "$mc_state/etc/flux/system" "$mc_state/var/lib/flux" "$mc_state/curve" "$MINICLUSTER_HOME/bin"
  for file in stopping ready working launcher ended exit-code unbound; do rm -f "$mc_state/run/$file"; done
  command -v bash >/dev/null || { mkdir -p "$mc_rc_bin" && ln -sf "$SHELL" "$mc_rc_bin/bash"; }
  ln -sf ../minicluster/flux.sh "$MINICLUSTER_HOME/bin/flux"
  ln -sf ../minicluster/scale.sh "$MINICLUSTER_HOME/bin/minicluster-scale"
  ln -sf minicluster/flux-view.sh "$MINICLUSTER_HOME/flux-view.sh"
  [ -z "$mc_view" ] || ln -sfn "$mc_view" "$MINICLUSTER_HOME/view"
  secret_file curve/curve.cert
  FLUX_OUTPUT_DIR=$mc_logs
  export FLUX_OUTPUT_DIR
  mkdir -p "$FLUX_OUTPUT_DIR" 2>/dev/null || true
}

# Flux and munge want their keys to be their user's own, and nobody else's to read.
secret_file() {
  mkdir -p "$mc_state/${1%/*}"
  (umask 0377 && rm -f "$mc_state/$1" && cat "$MINICLUSTER_HOME/$1" >"$mc_state/$1")
}

version() { "$mc_flux" --version | sed -n 's/^commands:[[:space:]]*//p'; }

# So many ids from 0 on, as an idset (RFC 22).
ids() { if [ "$1" = 1 ]; then echo 0; else echo "0-$(($1 - 1))"; fi; }

# The resource set R, over all hosts that may ever come: a line of mc_resources has ranks, hosts, cores and
# GPUs of a node. A part of it that fails leaves no R, with which jobs would wait for ever.
resources() {
  parts=$mc_state/run/R
  printf '%s\n' "$mc_resources" >"$parts.lines"
  while read -r ranks hosts cores gpus; do
    [ "$cores" != - ] || cores=$(own_cores) || return
    set -- --ranks="$ranks" --hosts="$hosts" --cores="$(ids "$cores")"
    [ "$gpus" = 0 ] || set -- "$@" --gpus="$(ids "$gpus")"
    "$mc_flux" R encode "$@" || return
  done <"$parts.lines" >"$parts" && "$mc_flux" R append <"$parts" >"$mc_state/etc/flux/system/R"
}

own_cores() {
  own=$("$mc_flux" R encode --local) && printf '%s\n' "$own" | "$mc_flux" R decode --count=core
}

# How many CPUs this pod may run on.
cpus() {
  while read -r name spans; do
    [ "$name" != Cpus_allowed_list: ] || break
  done </proc/self/status
  count=0
  IFS=,
  for span in $spans; do count=$((count + ${span#*-} - ${span%-*} + 1)); done
  echo "$count"
}

# Flux binds the tasks of a job to CPUs that it numbers from 0 in each pod. Those are this pod's own only where it may
# run on as many as it asks for: an exclusive cpuset, or the whole node.
choose_affinity() {
  case $mc_affinity in
  on) return 0 ;;
  auto) [ "$(cpus)" != "$mc_cpus" ] || return 0 ;;
  esac
  : >"$mc_state/run/unbound"
}

# Runs a broker to its end, with the words of its initial program; its exit code is in mc_code.
run_broker() {
  rm -rf "$mc_run"
  mkdir -p "$mc_run"
  begin=$(centiseconds)
  eval "set -- $mc_start_words -Shostname='$mc_name-$JOB_COMPLETION_INDEX' \"\$@\""
  shift
  unset FLUX_URI
  run env "PATH=$PATH:$mc_rc_bin" "$mc_flux" "$@"
  [ -z "$mc_timed" ] || timed fluxstart "$begin"
}

lead() {
  snippet broker-pre.sh
  use_archive
  use_state_volume
  run_broker sh "$mc_files/job.sh"
  keep_archive
  if [ -e "$mc_state/run/exit-code" ]; then
    read -r mc_result <"$mc_state/run/exit-code"
    [ "$mc_result" = 0 ] || warn "the job failed with exit code $mc_result"
    snippet post.sh
    end "$mc_result"
  fi
  [ -z "$mc_stopped" ] || exit "$RETRY"
  if [ "$mc_code" = 129 ] && [ -e "$mc_state/run/ready" ]; then
    warn "the instance was shut down before its job ended"
    end "$mc_code"
  elif [ "$mc_code" -lt 128 ] && ! [ -e "$mc_state/run/ready" ]; then
    warn "the broker did not start, exit code $mc_code"
    end "$((mc_code ? mc_code : 1))"
  fi
  warn "the broker died, exit code $mc_code: this pod is to be replaced"
  exit "$RETRY"
}

# The broker of a burst waits for its lead without a word, also when the address or the certificate is wrong.
warn_while_alone() {
  sleep 60
  case " $(FLUX_URI=$(broker_uri) "$mc_flux" uptime 2>/dev/null) " in
  *" join "*) warn "no answer for 60 s from the lead, $mc_joins: check address, network and certificate" ;;
  esac
}

# A worker comes back by itself until the instance ends or this pod is told to stop.
worker() {
  snippet worker-pre.sh
  hint=${mc_joins:+"; the log of its lead, $mc_joins, may say why"}
  pause=1
  while :; do
    if [ -n "$mc_joins" ]; then warn_while_alone & watch=$!; fi
    run_broker
    [ -z "$mc_joins" ] || kill "$watch" 2>/dev/null || true
    [ -z "$mc_stopped" ] || exit "$RETRY"
    if [ -e "$mc_state/run/ended" ] || [ -n "$mc_complete_workers" ]; then break; fi
    if [ "$mc_code" = 0 ]; then say "the instance ended: this broker starts again"; else
      warn "the broker ended with exit code $mc_code and starts again in $pause s$hint"
    fi
    # between tries, so that a broker that can't start doesn't spin
    run sleep "$pause"
    pause=$((pause < 8 ? pause * 2 : 8))
  done
  mc_result=0
  # the work is done: what fails here must not fail the Job, and with it end the lead before its result is known
  # shellcheck disable=SC2034 # for process.sh
  mc_harmless=1
  snippet post.sh
  exit 0
}

main() {
  # flux puts the view's modules into PYTHONPATH: the job gets the image's own back
  MINICLUSTER_PYTHONPATH=${PYTHONPATH:-}
  export MINICLUSTER_PYTHONPATH
  for file in environment time process home munge archive; do
    # shellcheck source=/dev/null
    . "$MINICLUSTER_HOME/minicluster/$file.sh"
  done
  if [ "$JOB_COMPLETION_INDEX" = 0 ] && [ -z "$mc_joins" ]; then mc_role='lead'; else mc_role='worker'; fi
  mkdir -p "$mc_state/run"
  trap on_stop TERM INT
  trap on_exit EXIT
  find_home "$mc_state"
  prepare
  snippet init.sh
  if ! [ -x "$mc_flux" ]; then
    warn "there is no flux here (${mc_view:-in PATH}): set flux.container.image to a view for this image's distribution"
    end 127
  fi
  snippet pre.sh
  start_munge
  choose_affinity
  resources || {
    warn "the resource set R can't be made: see the lines above"
    end 1
  }
  [ -n "$mc_quiet" ] || say "$mc_name-$JOB_COMPLETION_INDEX of $mc_size (max $mc_max_size), Flux $(version)"
  "$mc_role"
}

main
