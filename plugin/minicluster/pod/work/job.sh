#!/bin/sh
# shellcheck disable=SC2034,SC2154 # mc_* come from settings.sh, some are for eval
# Initial program of the lead's broker, started once the quorum is reached: runs the runner's work, waits for its end
# and writes its exit code. Without work it waits for `flux shutdown`.
set -eu
# shellcheck source=environment.sh
. "$MINICLUSTER_HOME/minicluster/environment.sh"
# shellcheck source=shell.sh
. "$mc_files/shell.sh"
# shellcheck source=time.sh
. "$mc_files/time.sh"

main() {
  # instances that jobs start have other hosts
  unset FLUX_FAKE_HOSTNAME
  # for the broker alone
  [ -z "${MINICLUSTER_ARENAS:-}" ] || unset MALLOC_ARENA_MAX MINICLUSTER_ARENAS
  [ -z "${MINICLUSTER_NO_HISTORY:-}" ] || { "$mc_flux" jobtap remove .history && unset MINICLUSTER_NO_HISTORY; }
  check_scheduler
  # before anybody learns that there is something to shut down
  case $mc_work in diagnose | idle) trap 'finish 0' HUP ;; esac
  : >"$mc_state/run/ready"
  [ -z "$mc_queues" ] || start_queues
  undrain_nodes &
  [ -z "$mc_notify" ] || follow_jobs &
  case $mc_work in
  submit | launch | batch) work "$mc_work" ;;
  diagnose) diagnose && idle ;;
  idle) idle ;;
  esac
}

say() { [ -n "$mc_quiet" ] || printf 'minicluster: %s\n' "$*" >&2; }

# Prints which scheduler runs, and writes Fluxion's version, which only the log has, to a file for state.py. Fails if a
# value needs Fluxion and there is none.
check_scheduler() {
  fluxion=$("$mc_flux" dmesg | sed -n 's/.*sched-fluxion-qmanager.*: version //p')
  echo "$fluxion" >"$mc_state/run/fluxion"
  if [ -n "$fluxion" ]; then
    say "scheduler: Fluxion $fluxion"
  elif [ -n "$mc_needs_fluxion" ]; then
    echo "minicluster: $mc_needs_fluxion is set and this Flux has no Fluxion: drop it, or use a view with flux-sched" >&2
    finish 1
  else
    say 'scheduler: sched-simple'
  fi
}

# Starts the queues with names, which are stopped at first. One that Flux has restored is left as a person left it; a
# broker that was killed has saved none of its life.
start_queues() {
  known=$("$mc_flux" kvs get checkpoint.job-manager 2>/dev/null) || known=
  for queue in $mc_queues; do
    case $known in *"\"$queue\""*) continue ;; esac
    # an older flux has an option for it
    "$mc_flux" queue start --quiet "$queue" 2>/dev/null || "$mc_flux" queue start --quiet --queue "$queue" ||
      echo "minicluster: the queue $queue is stopped: flux queue start $queue" >&2
  done
}

# Succeeds if the queue may be that of an earlier broker: from another pod, or from one that died in this pod.
is_kept() { [ -n "$mc_archive$mc_state_volume" ] || [ -e "$mc_state/run/came-back" ]; }

# Runs the undrainer, with less of the CPU than the work, whose start it must not slow; not beside the one job of a single
# node. If it fails, it starts again; the failure is printed once, and written to a file for state.py.
undrain_nodes() {
  problem=$mc_state/run/undrainer.problem said=
  if is_kept; then kept=kept; else kept=lost; fi
  case $mc_hosts_count$kept$mc_work in 1lostsubmit | 1lostbatch) return 0 ;; esac
  # shellcheck disable=SC2086 # into numbers
  set -- "$mc_flux" python "$mc_files/undrainer.py" "$mc_on_stop" $kept ${mc_preemption:-}
  until rm -f "$problem" && nicely "$@" >&2 2>"$problem.new" || is_over; do
    why="minicluster: the undrainer failed, nodes that come back may stay drained, and jobs unrecorded: $(tail -n 1 "$problem.new")"
    [ "$why" = "$said" ] || echo "$why" >&2
    said=$why
    echo "$why" >"$problem"
    sleep 10
  done
}

# Tells of the jobs that have ended (notify.py).
follow_jobs() {
  until tell follow 0 || is_over; do sleep 10; done
}

# with WORDS: runs a command at a lower priority, where the image has nice.
nicely() { if command -v nice >/dev/null; then nice "$@"; else "$@"; fi; }

# Succeeds if the instance has ended, or is about to. The braces keep bash from telling that the command was killed.
is_over() { [ -e "$mc_state/run/exit-code" ] || ! { timeout 10 "$mc_flux" getattr rank; } >/dev/null 2>&1; }

# with FUNCTION: runs it as the work, timed, and ends with its exit code.
work() {
  [ -z "$mc_timed" ] || begin=$(centiseconds)
  : >"$mc_state/run/working"
  # not as a part of || or if: there, set -e has no effect in the function
  set +e
  (set -e && "$@")
  code=$?
  set -e
  # leaving pods may have put the work back into the queue
  if [ "$code" != 0 ] && [ "$mc_on_stop" = requeue ] && [ ! -e "$mc_state/run/stopping" ]; then
    set -- "$code"
    code=0
    "$mc_flux" python "$mc_files/own_work.py" follow "$1" || code=$?
  fi
  [ -z "$mc_timed" ] || timed fluxsubmit "$begin"
  finish "$code"
}

# with EXIT-CODE: ends the instance, and tells the workers not to start their brokers again.
finish() {
  trap '' HUP
  # a lead that was told to stop has no result: the next lead does the work again
  [ ! -e "$mc_state/run/stopping" ] || exit "$1"
  # no result either if the command failed because its broker died
  [ "$1" = 0 ] || ! is_over || exit "$1"
  echo "$1" >"$mc_state/run/exit-code"
  [ "$mc_hosts_count" = 1 ] ||
    timeout 10 "$mc_flux" exec -q -r all -x 0 /bin/sh -c ": >'$mc_state/run/ended'" >/dev/null 2>&1 || true
  exit "$1"
}

# Waits for `flux shutdown`, or until nothing has happened for as long as the values say.
idle() {
  while :; do
    if [ -z "$mc_end_after" ]; then sleep 3600 & else
      nicely "$mc_flux" python "$mc_files/end_idle.py" "$mc_end_after" &
    fi
    if wait $! 2>/dev/null; then
      [ -z "$mc_end_after" ] || end_idle
    elif [ -n "$mc_end_after" ]; then
      sleep 10
    fi
  done
}

end_idle() {
  echo "minicluster: for $mc_end_after s there was no job, and nobody connected: it ends (endAfterSeconds)" >&2
  finish 0
}

# Begins the work's part, in which flux is that of the view.
begin_work() {
  their_world
  find_flux
}

# Submits the command, which runs as one set of tasks.
submit() {
  cancel_previous_work
  begin_work
  say "$mc_submit_words"
  run_task "$mc_submit_words"
}

# A kept queue may have this work already, and the work must not run twice.
cancel_previous_work() {
  is_kept || return 0
  "$mc_flux" python "$mc_files/own_work.py" cancel || {
    echo "minicluster: nothing is submitted: the kept queue can't be searched for an earlier run of this work" >&2
    exit 1
  }
}

# Runs the command on the lead: it submits its own jobs.
launch() {
  begin_work
  offer_bindings
  say "$mc_prefix_words launcher"
  # while the launcher runs, this file has its process id, for leave.py
  running=$mc_state/run/launcher
  code=0
  run_task "/bin/sh -c 'echo \$\$ >\"\$0\" && exec \"\$@\"' \"\$running\" $mc_prefix_words" || code=$?
  our_world
  rm -f "$running"
  return "$code"
}

# Lets a launcher `import flux`: appends Flux's bindings, and nothing else of the view, to PYTHONPATH.
offer_bindings() {
  for bindings in "$mc_view"/lib/flux/python3*; do
    [ -n "$mc_view" ] && [ -d "$bindings" ] && command -v python3 >/dev/null || return 0
    PYTHONPATH=${PYTHONPATH:+$PYTHONPATH:}$bindings
    MINICLUSTER_BINDINGS=$bindings
    export PYTHONPATH MINICLUSTER_BINDINGS
    own=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || return 0
    [ "$own" = "${bindings##*/python}" ] ||
      say "the launcher can't import flux: the image's Python is $own, that of Flux ${bindings##*/python}"
  done
}

# with WORDS, quoted: runs them with the words of the task appended: a shell and the file of the command, or a script
# that names its interpreter. The text itself is never an argument: Flux would expand {{id}} in it.
run_task() {
  file=$mc_files/command
  [ -e "$file" ] || file=$mc_files/script
  if [ "$file" = "$mc_files/script" ] && [ -n "$mc_script_has_interpreter" ]; then
    eval "$1 \"\$file\""
  else
    eval "$1 \"\$mc_shell\" \"\$file\""
  fi
}

# Submits the batch script, whose lines are one job each; fails when one of them fails. A script of the user may name
# its interpreter.
batch() {
  script=$mc_state/run/batch
  read -r first <"$mc_files/batch" || true
  # exec: busybox' shell does not end when the redirection of a group fails
  exec 4>"$script"
  case $first in '#!'*) ;; *) printf '#!%s\n' "$mc_shell" >&4 ;; esac
  cat "$mc_files/batch" >&4
  exec 4>&-
  chmod +x "$script"
  cancel_previous_work
  begin_work
  say "$mc_batch_words"
  id=$(eval "$mc_batch_words \"\$script\"")
  "$mc_flux" job attach "$id"
}

diagnose() {
  "$mc_flux" overlay status || true
  "$mc_flux" resource list || true
  "$mc_flux" --version || true
  "$mc_flux" python "$mc_files/diagnose.py"
}

main
