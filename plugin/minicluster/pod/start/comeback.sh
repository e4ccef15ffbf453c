# shellcheck shell=sh disable=SC2034,SC2154 # mc_* come from settings.sh and others, or go to the entrypoint
# Brings a broker back in its pod: the lead's when it has died, and each when its container was killed. A new pod would
# come after Kubernetes' back-off, which doubles with each failure for the life of the Job. For the entrypoint.

# seconds after which a broker that dies begins a new series of deaths; failures that end a series, and how many of them
# a death before the quorum is
STEADY_SECONDS=60 MOST_FAILURES=50 EARLY_FAILURES=10
mc_failures=0 mc_has_state=''

# with FOLDER, /dev/shm: sets mc_was_killed if this container has run before: from 1.35 on, Kubernetes starts one that was
# killed again in its pod (restartPolicyRules). Its files are new, but the pod's volumes are as it left them.
find_former_life() {
  mc_was_killed=''
  [ -e "$mc_state/run" ] || return 0
  mc_was_killed=1
  # shared memory outlives the container, and would count for the next one
  [ -z "$mc_own_shm" ] || rm -rf "${1:?}"/* "$1"/.[!.]* 2>/dev/null || true
}

# Lets a container that was killed go on with the queue that is in its pod. If that must not be, the pod ends here, as in
# can_come_back.
return_after_kill() {
  # a result stands
  [ ! -e "$mc_state/run/exit-code" ] && [ ! -e "$mc_state/run/ended" ] || return 0
  why='the container was killed, most often for want of memory: raise resources.limits.memory'
  if [ -e "$mc_state/run/working" ] && ! keeps_queue; then
    warn "$why; the work begins anew: the Job replaces this pod"
    exit "$RETRY_CODE"
  fi
  warn "$why; it goes on in this pod"
  # what was restored is in the state by now
  [ ! -e "$mc_state/run/ready" ] || mc_has_state=1
  rm -rf "$mc_run"
  (cd "$mc_state/run" && rm -f stopping report report.problem report.purged unbound gpus agent.problem \
    former-lead.problem history.problem memory.problem jobs jobs.old)
  begin_again
}

# Removes what a broker that is gone has left to be read by others, and says that the next one may find a queue.
begin_again() {
  rm -f "$mc_state/run/ready" "$mc_state/run/working" "$mc_state/run/launcher" "$mc_state/run/undrainer.problem"
  : >"$mc_state/run/came-back"
}

# Runs the lead's broker to its end; when it has died, again, as long as it can come back. Sets mc_code to the last exit
# code.
run_lead() {
  while :; do
    read -r started _ </proc/uptime
    run_broker /bin/sh "$mc_files/job.sh"
    died=$mc_code
    tell_kills
    has_died || break
    show_errors
    can_come_back "$started" || break
    warn "the broker ended with exit code $died and starts again in this pod"
    # first the socket: nobody must wait for an answer there
    rm -rf "$mc_run"
    if ! end_remains || [ -e "$mc_state/run/exit-code" ]; then break; fi
    is_fit '' || break
    # what was restored is in the state by now
    [ ! -e "$mc_state/run/ready" ] || mc_restore_words=
    begin_again
  done
  mc_code=$died
}

# Succeeds if the lead's broker has ended without a result: not by the work, nor by a shutdown, nor because we told it
# to stop. A first broker that does not start has an exit code of its own.
has_died() {
  [ -z "$mc_stopped" ] && [ ! -e "$mc_state/run/exit-code" ] || return 1
  if [ -e "$mc_state/run/ready" ]; then [ "$mc_code" != 129 ]; else
    [ "$mc_code" -ge 128 ] || [ -e "$mc_state/run/came-back" ]
  fi
}

# with TIME SECONDS: succeeds if SECONDS have passed since TIME, seconds of this machine's uptime.
has_run_since() {
  read -r now _ </proc/uptime
  [ "$((${now%.*} - ${1%.*}))" -ge "$2" ]
}

# with the TIME of its start: succeeds if the broker may start again here, with the state in its folder. Not if the
# MiniCluster has work and keeps no queue: then the work begins anew, without the jobs of its former run, in a new pod.
can_come_back() {
  case $mc_work in submit | launch | batch) keeps_queue || return 1 ;; esac
  ! has_run_since "$1" "$STEADY_SECONDS" || mc_failures=0
  if [ -e "$mc_state/run/ready" ]; then mc_failures=$((mc_failures + 1)); else
    mc_failures=$((mc_failures + EARLY_FAILURES))
    run sleep 1
  fi
  [ -z "$mc_stopped" ] && [ "$mc_failures" -lt "$MOST_FAILURES" ]
}

# Ends the programs and jobs that a dead broker left in this container: none may run beside those of the next broker.
end_remains() {
  run "$mc_flux" python "$mc_files/orphans.py" "$mc_run"
  [ "$mc_code" = 0 ] && [ -z "$mc_stopped" ]
}
