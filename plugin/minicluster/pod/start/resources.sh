# shellcheck shell=sh disable=SC2154 # mc_* come from settings.sh and environment.sh
# Decides what Flux may use of the nodes: the resource set R, whether tasks are bound to CPUs, and which GPUs
# a task sees. For the entrypoint.

# In a pod of a group, sets mc_cpus and mc_gpu_variable to those of the group.
use_group() {
  while [ -n "$mc_group" ] && read -r mc_key mc_list mc_variable; do
    [ "$mc_key" != "$mc_group" ] || mc_cpus=${mc_list#-} mc_gpu_variable=$mc_variable
  done <<EOF
$mc_groups
EOF
}

# Writes R (RFC 20) over all hosts that may ever join. Flux uses the R of the lead; that of a worker must have the same
# hosts.
make_resources() {
  mc_ids=
  while :; do
    case $mc_resource_set in *'"own"'*) ;; *) break ;; esac
    [ -n "$mc_ids" ] || own_cores || return
    mc_resource_set=${mc_resource_set%%'"own"'*}\"$mc_ids\"${mc_resource_set#*'"own"'}
  done
  printf '%s\n' "$mc_resource_set" >"$mc_state/etc/flux/system/R"
}

# Sets mc_ids to an idset (RFC 22), from 0 on, with as many cores as Flux finds on the lead's node.
own_cores() {
  mc_ids=0
  [ "$mc_role" = lead ] || return 0
  mc_list=$("$mc_flux" R encode --local) || return
  case $mc_list in
  *'"core":'*\"*\"*) mc_list=${mc_list#*'"core":'} && mc_list=${mc_list#*\"} ;;
  *) warn "flux R encode --local names no cores: $mc_list" && return 1 ;;
  esac
  count_ids "${mc_list%%\"*}"
  [ "$mc_count" = 1 ] || mc_ids=0-$((mc_count - 1))
}

# Decides whether Flux binds tasks to CPUs, which it numbers from 0 in each pod. A pod has these CPUs for itself only if
# it may run on exactly as many as it requests: an exclusive cpuset, or the whole Kubernetes node. minicluster.lua reads
# the file.
choose_affinity() {
  case $mc_affinity in
  on) return 0 ;;
  auto)
    count_cpus
    [ "$mc_count" != "$mc_cpus" ] || return 0
    ;;
  esac
  : >"$mc_state/run/unbound"
}

# Notes by which variable a task is told its GPUs, unless that is Flux's own, and which ids the pod's GPUs have, if they
# don't count from 0: the device plugin set the same variable then, or it named MIG devices, which CUDA doesn't number.
# minicluster.lua reads the file.
note_gpus() {
  [ -n "$mc_gpu_variable" ] || return 0
  eval "mc_ids=\${$mc_gpu_variable:-}"
  case $mc_gpu_variable,$mc_ids,${NVIDIA_VISIBLE_DEVICES:-} in CUDA_*,,MIG-*) mc_ids=$NVIDIA_VISIBLE_DEVICES ;; esac
  [ "$mc_gpu_variable,$mc_ids" = CUDA_VISIBLE_DEVICES, ] ||
    printf '%s\n' "$mc_gpu_variable" "$mc_ids" >"$mc_state/run/gpus"
}

# With flux.locations, sets mc_locations to where this pod runs, and notes it. The broker tells it to frobnicator.py, and
# minicluster.lua reads the file.
note_locations() {
  mc_locations=${MINICLUSTER_NODE:+node=$MINICLUSTER_NODE}
  [ -n "$mc_locations" ] || return 0
  mc_locations="$mc_locations${MINICLUSTER_ZONE:+ zone=$MINICLUSTER_ZONE}${MINICLUSTER_REGION:+ region=$MINICLUSTER_REGION}"
  printf '%s\n' "$mc_locations" >"$mc_state/run/locations"
  [ "$mc_role" = worker ] || [ -n "${MINICLUSTER_ZONE:-}" ] ||
    warn "flux.locations: no zone: Kubernetes tells pods from 1.35 on, if the Kubernetes node has a zone"
}

# Sets mc_count to the number of CPUs that this pod may run on.
count_cpus() {
  # at once: bash goes back in a file after each line, and the lines before may have become longer
  while read -r mc_key mc_list; do
    [ "$mc_key" != Cpus_allowed_list: ] || break
  done <<END
$(cat /proc/self/status)
END
  count_ids "$mc_list"
}

# with LIST, such as 0-2,5: sets mc_count to the number of its members.
count_ids() {
  mc_count=0 mc_list=$1,
  while [ -n "$mc_list" ]; do
    mc_range=${mc_list%%,*} mc_list=${mc_list#*,}
    mc_count=$((mc_count + ${mc_range#*-} - ${mc_range%-*} + 1))
  done
}
