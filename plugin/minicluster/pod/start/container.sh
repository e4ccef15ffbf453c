#!/bin/sh
# shellcheck disable=SC2154 # mc_* come from settings.sh and environment.sh
# container.sh NAME sidecar|lead|service|agent: runs the command of a container other than the runner. A sidecar first
# waits for the broker of its pod, and gets the environment to use it. `lead` is a sidecar that runs on the lead only,
# as the agent does.
set -eu

# All pods have the same containers. In a pod where the container has nothing to do, only this shell runs. It waits for
# the end of the pod, by reading a FIFO to which nobody writes.
idle() {
  trap 'exit 0' TERM INT
  # the stop may have come before the trap was set
  [ ! -e "$MINICLUSTER_HOME/told-to-stop" ] || exit 0
  rm -f "$1"
  mkfifo "$1"
  while :; do read -r _ <>"$1" || true; done
}

# shellcheck source=../view/world.sh
. "$MINICLUSTER_HOME/minicluster/world.sh"
our_world
case $2 in lead | agent) [ "$JOB_COMPLETION_INDEX${MINICLUSTER_GROUP:-}" = 0 ] || idle "$MINICLUSTER_HOME/.own-$1" ;; esac

# shellcheck source=shell.sh
. "$MINICLUSTER_HOME/minicluster/shell.sh"
become_bash "$@"

# seconds for a broker to be there, and for one answer of it
WAIT_SECONDS=600 ANSWER_SECONDS=60
# exit codes of agent.py and of ASK: there is no broker any more, or it still waits for its quorum
BROKER_GONE_CODE=75 STARTING_CODE=76
ASK='import sys, flux
try:
    flux.Flux().rpc("state-machine.wait").wait_for(float(sys.argv[1])).get()
except TimeoutError:
    sys.exit(int(sys.argv[2]))'

main() {
  mc_container=$1
  # with the values' own variables
  their_world
  # shellcheck source=/dev/null
  if [ "$2" != service ]; then
    . "$MINICLUSTER_HOME/minicluster/flux-view.sh"
  else
    . "$MINICLUSTER_HOME/minicluster/settings.sh"
    mc_files=$MINICLUSTER_HOME/minicluster
  fi
  our_world
  # shellcheck source=/dev/null
  . "$mc_files/process.sh"
  if [ "$2" != service ]; then
    # a folder of its own: the containers may have different users, and start in any order
    # shellcheck source=home.sh
    . "$mc_files/home.sh"
    find_home "$MINICLUSTER_HOME/.own-$mc_container"
  fi
  trap stop TERM INT
  trap on_exit EXIT
  [ ! -e "$MINICLUSTER_HOME/told-to-stop" ] || exit 0
  run_snippet "$mc_container.init.sh"
  if [ "$2" = sidecar ] && [ -z "$mc_no_wait_socket" ]; then wait_for_broker; fi
  run_snippet "$mc_container.pre.sh"
  if [ "$2" = agent ]; then run_agent; else run_command; fi
  our_world
  mc_result=$mc_code
  run_snippet "$mc_container.post.sh"
  [ -z "$mc_stopped" ] || exit 0
  [ "$mc_result" = 0 ] || warn "$mc_container: the command failed with exit code $mc_result"
  # a sidecar whose command succeeded sleeps until the runner ends: Kubernetes would start it again
  case "$2 $mc_result" in
  'sidecar 0' | 'agent 0')
    run sleep infinity
    exit 0
    ;;
  esac
  exit "$mc_result"
}

wait_for_broker() {
  end=$(($(date +%s) + WAIT_SECONDS))
  while [ -z "$mc_stopped" ]; do
    if [ -S "$mc_run/local" ]; then
      # the socket exists before the broker's modules are loaded; only an image that can run the view's flux waits for
      # them
      "$mc_flux" --version >/dev/null 2>&1 || return 0
      run "$mc_flux" python -c "$ASK" "$ANSWER_SECONDS" "$STARTING_CODE"
      case $mc_code in
      0) return 0 ;;
      # it lives, and its quorum may take as long as Kubernetes needs for the pods
      "$STARTING_CODE") end=$(($(date +%s) + WAIT_SECONDS)) ;;
      *) run sleep 1 ;;
      esac
    fi
    if [ "$(date +%s)" -ge "$end" ]; then
      warn "$mc_container: no broker within $WAIT_SECONDS s"
      exit 1
    fi
    run sleep 0.2
  done
}

# The broker may come back in this pod: each end of a container counts for Kubernetes' back-off.
run_agent() {
  while :; do
    wait_for_broker
    run "$mc_flux" python "$mc_files/agent.py" "$mc_files/agent.json"
    [ "$mc_code" = "$BROKER_GONE_CODE" ] && [ -z "$mc_stopped" ] || return 0
    run sleep 1
  done
}

run_command() {
  their_world
  file=$mc_files/$mc_container.command
  if [ -e "$file" ]; then
    run "$mc_shell" "$file"
    return
  fi
  # a script may name its interpreter
  file=$mc_files/$mc_container.script
  read -r first <"$file" || true
  case $first in '#!'*) run "$file" ;; *) run "$mc_shell" "$file" ;; esac
}

if [ "$2" = lead ]; then main "$1" sidecar; else main "$@"; fi
