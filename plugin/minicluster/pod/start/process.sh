# shellcheck shell=sh disable=SC2034,SC2154,SC3040,SC3041 # settings and results are of others; bash by test
# Functions for the main process of every container: pass signals on, run the user's snippets, report what fails.
# For scripts that have called become_bash.

mc_child='' mc_stopped='' mc_snippet=''
# exit code of the work, once it is done; whether to ignore a snippet that fails after that
mc_result='' mc_harmless=''

# a copy of stderr, because a snippet may end the shell while its own output is still redirected
exec 3>&2
say() { [ -n "$mc_quiet" ] || warn "$*"; }
warn() { printf 'minicluster: %s\n' "$*" >&3; }

# On a signal to stop: passes it on to the child.
stop() {
  mc_stopped=1
  [ -z "$mc_child" ] || kill -TERM "$mc_child" 2>/dev/null || true
}

# Runs a child to its end, and sets mc_code to its exit code. Does nothing, with code 0, if the pod was told to stop.
run() {
  mc_code=0
  [ -z "$mc_stopped" ] || return 0
  "$@" 3>&- &
  mc_child=$!
  # a signal that came before mc_child was set found no child
  [ -z "$mc_stopped" ] || kill -TERM "$mc_child" 2>/dev/null || true
  # a trapped signal ends wait before the child has ended
  while :; do
    mc_code=0
    wait "$mc_child" 2>/dev/null || mc_code=$?
    kill -0 "$mc_child" 2>/dev/null || break
  done
  mc_child=
}

# Runs a snippet of the user in this shell, so that its exports last. With logging.quiet its output is shown only if it
# fails.
run_snippet() {
  [ -e "$mc_files/$1" ] || return 0
  mc_snippet=$1
  if [ -z "$mc_strict" ]; then set +eu; elif [ -n "${BASH_VERSION:-}" ]; then set -E -o pipefail; fi
  # the output, for on_exit; the services' pod has no folder for it
  mc_said=$MINICLUSTER_HOME/.said-${mc_container:-runner}
  (: >"$mc_said") 2>/dev/null || mc_said=/dev/null
  their_world
  # shellcheck source=/dev/null
  if [ -n "$mc_quiet" ]; then . "$mc_files/$1" >"$mc_said" 2>&1; else . "$mc_files/$1"; fi
  set -eu
  our_world
  if [ -n "${BASH_VERSION:-}" ]; then set +E +o pipefail; fi
  mc_snippet=
}

# For `trap … EXIT`. A strict snippet that fails, or one that calls exit, ends the shell at once. This prints the
# snippet's name, and turns an exit 0 before the work is done into a failure.
on_exit() {
  code=$?
  trap - EXIT
  our_world
  [ -n "$mc_snippet" ] || exit "$code"
  if [ "$code" != 0 ]; then
    [ -z "$mc_quiet" ] || tail -n 5 "$mc_said" >&3
    warn "$mc_snippet failed with exit code $code"
    [ -z "$mc_harmless" ] || exit 0
    exit_with "$code"
  fi
  [ -z "$mc_result" ] || exit_with "$mc_result"
  warn "$mc_snippet ended the container with exit 0 before its work: end a snippet with return, not exit"
  exit 1
}

# Exits with a code of the user's work. 85, 137 and 255 become 1: for these the Job would replace the pod.
exit_with() {
  case $1 in
  85 | 137 | 255)
    warn "exit code $1 would mean to Kubernetes that the pod was killed: it becomes 1"
    exit 1
    ;;
  esac
  exit "$1"
}
