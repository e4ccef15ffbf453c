#!/bin/sh
# shellcheck disable=SC2034,SC2154 # mc_* come from settings.sh, some are for eval
# Initial program of the lead's broker, started once the quorum is there: does the work of the runner, waits
# for its end and leaves its exit code. Without work it waits for `flux shutdown`.
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
  [ "$mc_hosts_count" = 1 ] ||
    timeout 10 "$mc_flux" exec -q -r all -x 0 sh -c ": >'$mc_state/run/ended'" >/dev/null 2>&1 || true
  exit "$1"
}

idle() {
  trap 'finish 0' HUP
  while :; do
    sleep 3600 &
    wait $! 2>/dev/null || true
  done
}

# Undrains the ranks of pods that are gone, from the first that leaves on: Python would slow the start. Drains of
# an earlier life are kept with the queue.
keep() {
  if [ -n "$mc_archive$mc_state_volume" ]; then set -- kept; else
    "$mc_flux" event sub --count=1 minicluster.leave
  fi
  exec "$mc_flux" python "$mc_files/keeper.py" "$@"
}

tell() { [ -n "$mc_quiet" ] || printf 'minicluster: %s\n' "$*" >&2; }

# Does a function of the work, timed, and ends with its exit code.
work() {
  begin=$(centiseconds)
  : >"$mc_state/run/working"
  # behind || or if a shell goes on after what fails in the function
  set +e
  (set -e && "$@")
  code=$?
  set -e
  [ -z "$mc_timed" ] || timed fluxsubmit "$begin"
  finish "$code"
}

# In a queue that was kept there may be this work already: it must not run twice.
forget_earlier() {
  [ -n "$mc_archive$mc_state_volume" ] || return 0
  "$mc_flux" python "$mc_files/earlier.py" || {
    echo "minicluster: nothing is submitted: the kept queue can't be searched for an earlier run of this work" >&2
    exit 1
  }
}

# The command, one set of tasks.
submit() {
  forget_earlier
  tell "$mc_submit_words"
  task "$mc_submit_words"
}

# Says which scheduler runs; a policy that only Fluxion has is not ignored.
check_scheduler() {
  if "$mc_flux" module stats sched-fluxion-qmanager >/dev/null 2>&1; then
    tell 'scheduler: Fluxion'
  elif [ -n "$mc_needs_fluxion" ]; then
    echo "minicluster: $mc_needs_fluxion is set and this Flux has no Fluxion: drop it, or use a view with flux-sched" >&2
    finish 1
  else
    tell 'scheduler: sched-simple'
  fi
}

# The command, as the instance's program: it submits its own jobs.
launch() {
  offer_bindings
  tell "$mc_prefix_words launcher"
  # while it runs its number is there for leave.py
  running=$mc_state/run/launcher
  code=0
  task "sh -c 'echo \$\$ >\"\$0\" && exec \"\$@\"' \"\$running\" $mc_prefix_words" || code=$?
  rm -f "$running"
  return "$code"
}

# A launcher's `import flux`: the view's bindings, and nothing else of it, behind the image's own modules.
offer_bindings() {
  for bindings in "$mc_view"/lib/flux/python3*; do
    [ -n "$mc_view" ] && [ -d "$bindings" ] && command -v python3 >/dev/null || return 0
    PYTHONPATH=${PYTHONPATH:+$PYTHONPATH:}$bindings
    MINICLUSTER_BINDINGS=$bindings
    export PYTHONPATH MINICLUSTER_BINDINGS
    own=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || return 0
    [ "$own" = "${bindings##*/python}" ] ||
      tell "the launcher can't import flux: the image's Python is $own, that of Flux ${bindings##*/python}"
  done
}

# Runs quoted words with those of the task behind them: a shell and its file, or a script that says itself
# what it is for. Never the text as an argument, in which Flux would expand {{id}}.
task() {
  file=$mc_files/command
  [ -e "$file" ] || file=$mc_files/script
  if [ "$file" = "$mc_files/script" ] && [ -n "$mc_script_has_interpreter" ]; then
    eval "$1 \"\$file\""
  else
    eval "$1 \"\$mc_shell\" \"\$file\""
  fi
}

# The lines of a batch script, each a job; it fails when one of them does. A script of the user's may say itself what it
# is for.
batch() {
  script=$mc_state/run/batch
  read -r first <"$mc_files/batch" || true
  # the redirection as a command: that of a group does not end busybox' shell when it fails
  exec 4>"$script"
  case $first in '#!'*) ;; *) printf '#!%s\n' "$(command -v bash || echo /bin/sh)" >&4 ;; esac
  cat "$mc_files/batch" >&4
  exec 4>&-
  chmod +x "$script"
  forget_earlier
  tell "$mc_batch_words"
  id=$(eval "$mc_batch_words \"\$script\"")
  "$mc_flux" job attach "$id"
}

diagnose() {
  "$mc_flux" overlay status || true
  "$mc_flux" resource list || true
  "$mc_flux" --version || true
  "$mc_flux" python "$mc_files/diagnose.py"
}

# the image's own again, without what flux puts before it
PYTHONPATH=$MINICLUSTER_PYTHONPATH
export PYTHONPATH
[ -n "$PYTHONPATH" ] || unset PYTHONPATH
if command -v bash >/dev/null; then mc_shell='bash'; else mc_shell='sh'; fi
check_scheduler
: >"$mc_state/run/ready"
keep >/dev/null 2>&1 &
case $mc_work in
submit | launch | batch) work "$mc_work" ;;
diagnose) diagnose && idle ;;
idle) idle ;;
esac
