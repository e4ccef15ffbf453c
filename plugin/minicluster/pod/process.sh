# shellcheck shell=sh disable=SC2034,SC2154,SC3040,SC3041 # settings come from settings.sh, results go to who sources this, bash by test
# What every main process of a container does: passes signals on, runs the user's snippets, says what fails.
# For scripts that run as bash where there is one.

mc_child='' mc_stopped='' mc_snippet=''
# exit code of the work, once it is done; whether a snippet that fails then changes nothing
mc_result='' mc_harmless=''

# a snippet that ends the shell does so with its own output still redirected
exec 3>&2
say() { [ -n "$mc_quiet" ] || warn "$*"; }
warn() { printf 'minicluster: %s\n' "$*" >&3; }

# Told to stop: so is the child.
stop() {
  mc_stopped=1
  [ -z "$mc_child" ] || kill -TERM "$mc_child" 2>/dev/null || true
}

# Runs a child to its end; its exit code is in mc_code, 0 when a stop came first.
run() {
  mc_code=0
  [ -z "$mc_stopped" ] || return 0
  "$@" 3>&- &
  mc_child=$!
  # a stop that came meanwhile had no child to tell
  [ -z "$mc_stopped" ] || kill -TERM "$mc_child" 2>/dev/null || true
  # a trapped signal ends wait before the child has ended
  while :; do
    mc_code=0
    wait "$mc_child" 2>/dev/null || mc_code=$?
    kill -0 "$mc_child" 2>/dev/null || break
  done
  mc_child=
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

# A strict snippet that fails, or one that exits, ends the shell where it stands: this says so, and keeps
# an exit 0 before the work is done from passing for the work's. For `trap … EXIT`.
on_exit() {
  code=$?
  trap - EXIT
  [ -n "$mc_snippet" ] || exit "$code"
  if [ "$code" != 0 ]; then
    warn "$mc_snippet failed with exit code $code"
    [ -z "$mc_harmless" ] || exit 0
    end "$code"
  fi
  [ -z "$mc_result" ] || end "$mc_result"
  warn "$mc_snippet ended the container with exit 0 before its work: end a snippet with return, not exit"
  exit 1
}

# Ends with an exit code that is not one of those that Kubernetes takes for a pod to replace.
end() {
  case $1 in
  85 | 137)
    warn "exit code $1 would mean to Kubernetes that the pod was killed: it becomes 1"
    exit 1
    ;;
  esac
  exit "$1"
}
