#!/bin/sh
# slurm_signal.sh SECONDS SIGNAL script|steps PROGRAM [WORD…]: becomes a script of sbatch, or its steps, that get a signal
# some seconds after the start of the job, as by --signal. Flux's own option signals all processes of the script, which end of it.
set -u

seconds=$1 signal=$2 whom=$3
shift 3

warn() {
  # a Flux of the job's own has taken a part of them
  at=$((${SLURM_JOB_START_TIME:-$(date +%s)} + seconds))
  # this process has the script's descriptors, and Flux waits until all are closed: it must not outlive the script
  while [ "$(date +%s)" -lt "$at" ]; do
    kill -0 $$ || exit 0
    sleep 1
  done
  case $whom in
  script) kill "-$signal" $$ ;;
  steps)
    # steps that are children of the script (slurm_step.py), and those that are jobs of the job's own Flux
    [ ! -e "${FLUX_JOB_TMPDIR:-}/slurm-pids" ] || while read -r pid; do kill "-$signal" "$pid"; done <"$FLUX_JOB_TMPDIR/slurm-pids"
    [ "${MINICLUSTER_SLURM_STEP:-here}" = here ] || for job in $(flux jobs --no-header --format='{id.dec}' --filter=running); do
      flux job kill "--signal=$signal" "$job"
    done
    ;;
  esac
}

warn </dev/null >/dev/null 2>&1 &
exec "$@"
