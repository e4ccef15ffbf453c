#!/bin/sh
# shellcheck disable=SC2154,SC2329,SC3040,SC3041 # mc_* come from settings.sh, functions run by trap, bash by test
# Entrypoint of the container that runs Flux: starts this pod's broker and ends with an exit code that
# Kubernetes can act on:
#   lead    the job's own exit code, or a failing snippet's
#   worker  0 once the instance ended by itself, or a failing snippet's exit code
#   both    85 when told to stop or the broker died: the Job replaces the pod
set -eu

# Snippets may be written for bash: be bash where the image has it.
if [ -z "${BASH_VERSION:-}" ] && command -v bash >/dev/null; then exec bash "$0"; fi

RETRY=85

say() { [ -n "$mc_quiet" ] || printf 'minicluster: %s\n' "$*" >&2; }
warn() { printf 'minicluster: %s\n' "$*" >&2; }

# Ends with an exit code that is not one of those that Kubernetes takes for a pod to replace.
end() {
  case $1 in
  "$RETRY" | 137)
    warn "exit code $1 would mean to Kubernetes that the pod was killed: it becomes 1"
    exit 1
    ;;
  esac
  exit "$1"
}

# Told to stop: the broker is, and whatever it then exits with, this pod must come back.
stop() {
  : >"$mc_stopping"
  mc_stopped=1
  [ -z "$mc_broker" ] || kill -TERM "$mc_broker" 2>/dev/null || true
}

# A user of any uid, perhaps without a passwd entry or a writable file system; an image perhaps without bash,
# which the broker takes for its user's shell, and the lead's rc scripts call by name.
find_home() {
  [ -x "${SHELL:-}" ] || SHELL=$(command -v bash || command -v sh)
  export SHELL
  if ! [ -d "${HOME:-}" ] || ! [ -w "$HOME" ] || [ "$HOME" = / ]; then
    HOME=$mc_state/home
    export HOME
    mkdir -p "$HOME"
  fi
  if ! [ -w "${TMPDIR:-/tmp}" ]; then
    TMPDIR=$mc_state/tmp
    export TMPDIR
    mkdir -p "$TMPDIR"
  fi
}

prepare() {
  mkdir -p "$mc_run" "$mc_state/etc/flux/system" "$mc_state/var/lib/flux" "$mc_state/curve" "$MINICLUSTER_HOME/bin"
  rm -f "$mc_stopping" "$mc_state/run/ready" "$mc_state/run/ended" "$mc_state/run/exit-code"
  command -v bash >/dev/null || { mkdir -p "$mc_rc_bin" && ln -sf "$SHELL" "$mc_rc_bin/bash"; }
  ln -sf ../minicluster/flux.sh "$MINICLUSTER_HOME/bin/flux"
  ln -sf minicluster/flux-view.sh "$MINICLUSTER_HOME/flux-view.sh"
  [ -z "$mc_view" ] || ln -sfn "$mc_view" "$MINICLUSTER_HOME/view"
  # Flux wants the certificate to be its user's own, and nobody else's to read.
  (umask 0377 && rm -f "$mc_state/curve/curve.cert" &&
    cat "$MINICLUSTER_HOME/curve/curve.cert" >"$mc_state/curve/curve.cert")
  FLUX_OUTPUT_DIR=${mc_logs:-/tmp/fluxout}
  export FLUX_OUTPUT_DIR
  mkdir -p "$FLUX_OUTPUT_DIR" 2>/dev/null || true
}

version() { "$mc_flux" --version | sed -n 's/^commands:[[:space:]]*//p'; }

# The resource set R, over all hosts that may ever come.
resources() {
  cores=${mc_cores:-$("$mc_flux" R encode --local | "$mc_flux" R decode --count=core)}
  set -- --hosts="$mc_hosts" --cores="0-$((cores - 1))"
  [ -z "$mc_gpus" ] || set -- "$@" --gpus="0-$((mc_gpus - 1))"
  "$mc_flux" R encode "$@" >"$mc_state/etc/flux/system/R"
}

# Runs a text of the user's in this shell, so that what it exports stays; quiet hides what it prints.
snippet() {
  [ -e "$mc_files/$1" ] || return 0
  mc_snippet=$1
  if [ -z "$mc_strict" ]; then set +eu; elif [ -n "${BASH_VERSION:-}" ]; then set -E -o pipefail; fi
  # shellcheck source=/dev/null
  if [ -n "$mc_quiet" ]; then . "$mc_files/$1" >/dev/null 2>&1; else . "$mc_files/$1"; fi
  set -eu
  if [ -n "${BASH_VERSION:-}" ]; then set +E +o pipefail; fi
  mc_snippet=
}

# A strict snippet that fails ends the shell where it stands: this says so.
on_exit() {
  mc_code=$?
  trap - EXIT
  if [ -n "$mc_snippet" ] && [ "$mc_code" != 0 ]; then
    warn "$mc_snippet failed with exit code $mc_code"
    end "$mc_code"
  fi
}

# Runs a broker to its end, with the words of its initial program; its exit code is in mc_code.
run_broker() {
  rm -rf "$mc_run"
  mkdir -p "$mc_run"
  mc_code=0
  [ -z "$mc_stopped" ] || return 0
  mc_begin=$(centiseconds)
  eval "set -- $mc_start_words -Shostname='$mc_name-$JOB_COMPLETION_INDEX' \"\$@\""
  shift
  unset FLUX_URI
  PATH=$PATH:$mc_rc_bin "$mc_flux" "$@" &
  mc_broker=$!
  # a stop that came meanwhile had no broker to tell
  [ -z "$mc_stopped" ] || kill -TERM "$mc_broker" 2>/dev/null || true
  # a trapped signal ends wait before the broker has ended
  while :; do
    mc_code=0
    wait "$mc_broker" || mc_code=$?
    kill -0 "$mc_broker" 2>/dev/null || break
  done
  mc_broker=
  [ -z "$mc_timed" ] || timed fluxstart "$mc_begin"
}

lead() {
  snippet broker-pre.sh
  run_broker sh "$mc_files/job.sh"
  if [ -e "$mc_state/run/exit-code" ]; then
    read -r code <"$mc_state/run/exit-code"
    [ "$code" = 0 ] || warn "the job failed with exit code $code"
    snippet post.sh
    end "$code"
  fi
  [ -z "$mc_stopped" ] || exit "$RETRY"
  if ! [ -e "$mc_state/run/ready" ]; then
    warn "the broker did not start, exit code $mc_code"
    end "$((mc_code ? mc_code : 1))"
  elif [ "$mc_code" = 129 ]; then
    warn "the instance was shut down before its job ended"
    end "$mc_code"
  fi
  warn "the broker died, exit code $mc_code: this pod is to be replaced"
  exit "$RETRY"
}

# A worker comes back by itself until the instance ends or this pod is told to stop.
worker() {
  snippet worker-pre.sh
  pause=1
  while :; do
    run_broker
    [ -z "$mc_stopped" ] || exit "$RETRY"
    if [ -e "$mc_state/run/ended" ] || [ -n "$mc_complete_workers" ]; then break; fi
    if [ "$mc_code" = 0 ]; then say "the instance ended: this broker starts again"; else
      warn "the broker ended with exit code $mc_code and starts again in $pause s"
    fi
    # a pause between tries, so that a broker that can't start doesn't spin; a signal ends it
    sleep "$pause" &
    wait $! || true
    pause=$((pause < 8 ? pause * 2 : 8))
  done
  snippet post.sh
  exit 0
}

main() {
  mc_broker='' mc_stopped='' mc_snippet=''
  mc_stopping=$MINICLUSTER_HOME/config/run/stopping
  trap stop TERM INT
  trap on_exit EXIT
  # flux puts the view's modules into PYTHONPATH: the job gets the image's own back
  MINICLUSTER_PYTHONPATH=${PYTHONPATH:-}
  export MINICLUSTER_PYTHONPATH
  # shellcheck source=environment.sh
  . "$MINICLUSTER_HOME/minicluster/environment.sh"
  # shellcheck source=time.sh
  . "$mc_files/time.sh"
  find_home
  prepare
  snippet init.sh
  if ! [ -x "$mc_flux" ]; then
    warn "there is no flux here (${mc_view:-in PATH}): set flux.container.image to a view for this image's distribution"
    end 127
  fi
  snippet pre.sh
  resources
  [ -n "$mc_quiet" ] || say "$mc_name-$JOB_COMPLETION_INDEX of $mc_size (max $mc_max_size), Flux $(version)"
  if [ "$JOB_COMPLETION_INDEX" = 0 ]; then lead; else worker; fi
}

main
