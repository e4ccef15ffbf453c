#!/bin/sh
# shellcheck disable=SC2154 # mc_* come from settings.sh and environment.sh
# Entrypoint of the container that runs Flux. Starts this pod's broker and ends with an exit code that Kubernetes can
# act on:
#   lead    the exit code of the job, or of a snippet that failed
#   worker  0 once the instance has ended by itself, or the exit code of a snippet that failed
#   both    85 when told to stop: the Job replaces the pod; on the lead also when the broker died and can't come back
# It starts few processes before the broker: on a Kubernetes node whose pods all start at once, each one costs time.
set -eu

# shellcheck source=../view/world.sh
. "$MINICLUSTER_HOME/minicluster/world.sh"
our_world
# shellcheck source=shell.sh
. "$MINICLUSTER_HOME/minicluster/shell.sh"
become_bash "$@"

RETRY_CODE=85

main() {
  # with the values' own variables
  their_world
  for file in environment time process home secrets config network memory resources archive report leave broker check \
    comeback watch lead worker; do
    # shellcheck source=/dev/null
    . "$MINICLUSTER_HOME/minicluster/$file.sh"
  done
  our_world
  mc_group=${MINICLUSTER_GROUP:-}
  if [ "$JOB_COMPLETION_INDEX$mc_group$mc_joins" = 0 ]; then mc_role='lead'; else mc_role='worker'; fi
  mc_job=$mc_name${mc_group:+-$mc_group}
  mc_host=$mc_job-$JOB_COMPLETION_INDEX
  check_names
  find_former_life /dev/shm
  make_folders /tmp
  trap on_stop TERM INT
  trap on_exit EXIT
  # the stop may have come before the trap was set
  [ ! -e "$mc_told_to_stop" ] || exit "$RETRY_CODE"
  find_home "$mc_state"
  prepare
  note_shared_memory /dev/shm
  find_memory /sys/fs/cgroup
  [ -z "$mc_was_killed" ] || return_after_kill
  run_snippet init.sh
  if ! [ -x "$mc_flux" ]; then
    warn "there is no flux here (${mc_view:-in PATH}): set flux.container.image to a view for this image's distribution"
    exit_with 127
  fi
  run_snippet pre.sh
  check_wrap
  check_output_folder
  start_munge
  choose_ip_family /proc/net
  use_group
  choose_affinity
  note_gpus
  note_locations
  make_resources || {
    warn "the resource set R can't be made: see the lines above$(also_has)"
    exit_with 1
  }
  version=
  [ "$mc_role" = worker ] || find_version
  if [ -n "$mc_group" ]; then say "$mc_host, group $mc_group of $mc_name"; else
    say "$mc_host of $mc_size (max $mc_max_size)${version:+, Flux $version}"
  fi
  "$mc_role"
}

# Fails if the Job has another name, or another namespace, than when it was rendered: no broker would find another one.
check_names() {
  # the pods of an older Job don't know them
  [ "${MINICLUSTER_JOB:-$mc_job} ${MINICLUSTER_NAMESPACE:-$mc_namespace}" != "$mc_job $mc_namespace" ] || return 0
  warn "this pod is $MINICLUSTER_JOB-$JOB_COMPLETION_INDEX in the namespace $MINICLUSTER_NAMESPACE, and its configuration\
 is that of $mc_host in $mc_namespace: names can't change after the rendering; set nameOverride and Helm's --namespace"
  exit_with 1
}

# Makes the files that the pod's programs expect.
prepare() {
  [ "$mc_shell" != /bin/sh ] || { mkdir -p "$mc_rc_bin" && ln -sf "$mc_shell" "$mc_rc_bin/bash"; }
  [ -z "$mc_view" ] || ln -sfn "$mc_view" "$MINICLUSTER_HOME/view"
  offer flux-view.sh "$MINICLUSTER_HOME"/flux-view.sh
  offer flux.sh "$MINICLUSTER_HOME"/bin/flux
  offer scale.sh "$MINICLUSTER_HOME"/bin/minicluster-scale
  for mc_command in sbatch salloc srun squeue sacct sinfo scancel scontrol; do offer slurm.sh "$mc_slurm/$mc_command"; done
  chmod 755 "$MINICLUSTER_HOME"/flux-view.sh "$MINICLUSTER_HOME"/bin/* "$mc_slurm"/*
  copy_secret curve/curve.cert
}

# with PROGRAM, FILE: makes a command that sources one of our programs. A link would cost a process.
offer() {
  # programs call some with an environment of their own
  printf '%s\n' '#!/bin/sh' "export MINICLUSTER_HOME='$MINICLUSTER_HOME'" ". '$mc_files/$1'" >"$2"
}

# with FOLDER: makes the folders of the pod, and that of the jobs' output: that of the values, else one below FOLDER,
# which a read-only root or a file of the image can prevent.
make_folders() {
  FLUX_OUTPUT_DIR=${mc_logs:-$1/fluxout}
  export FLUX_OUTPUT_DIR
  set -- "$mc_state/run/usage" "$mc_state/curve" "$mc_state/etc/flux/system" "$mc_state/var/lib/flux" \
    "$MINICLUSTER_HOME/bin" "$mc_slurm"
  mkdir -p "$@" "$FLUX_OUTPUT_DIR" 2>/dev/null || mkdir -p "$@"
  [ -d "$FLUX_OUTPUT_DIR" ] && [ -w "$FLUX_OUTPUT_DIR" ] && return 0
  [ -z "$mc_logs" ] || return 0
  FLUX_OUTPUT_DIR=$mc_state/fluxout
  mkdir -p "$FLUX_OUTPUT_DIR"
}

# Fails if the jobs of a batch can't write their output.
check_output_folder() {
  [ "$mc_work" != batch ] || [ -w "$FLUX_OUTPUT_DIR" ] && return 0
  warn "logs: $FLUX_OUTPUT_DIR can't be written by user $(id -u): name a folder on a volume where it may write"
  exit_with 1
}

# Fails if flux.wrap names a program that this image lacks: Flux would not say which.
check_wrap() {
  [ -z "$mc_wrap" ] || command -v "$mc_wrap" >/dev/null && return 0
  warn "flux.wrap: there is no $mc_wrap in this image: correct the value, or use an image that has it"
  exit_with 127
}

main
