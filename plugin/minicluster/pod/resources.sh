# shellcheck shell=sh disable=SC2154 # mc_* come from settings.sh and environment.sh
# What Flux may use of the nodes: the resource set R, and whether tasks are bound to CPUs. For the entrypoint.

# Writes R (RFC 20) over all hosts that may ever join. Each line of mc_resources has ranks, hosts, and the cores and
# GPUs of a node. Fails as a whole when one part fails: with half of R, jobs would wait for ever.
make_resources() {
  parts=$mc_state/run/R
  printf '%s\n' "$mc_resources" >"$parts.lines"
  while read -r ranks hosts cores gpus; do
    [ "$cores" != - ] || cores=$(count_cores) || return
    first_ids "$cores"
    set -- --ranks="$ranks" --hosts="$hosts" --cores="$mc_ids"
    if [ "$gpus" != 0 ]; then
      first_ids "$gpus"
      set -- "$@" --gpus="$mc_ids"
    fi
    "$mc_flux" R encode "$@" || return
  done <"$parts.lines" >"$parts" && "$mc_flux" R append <"$parts" >"$mc_state/etc/flux/system/R"
}

# with COUNT: sets mc_ids to the idset (RFC 22) of that many ids, from 0 on.
first_ids() { if [ "$1" = 1 ]; then mc_ids=0; else mc_ids=0-$(($1 - 1)); fi; }

# Prints how many cores Flux finds on this node.
count_cores() {
  local_set=$("$mc_flux" R encode --local) && printf '%s\n' "$local_set" | "$mc_flux" R decode --count=core
}

# Flux binds tasks to CPUs that it numbers from 0 in each pod. A pod owns the CPUs of these numbers only when it may
# run on exactly as many as it requests: an exclusive cpuset, or the whole node. minicluster.lua reads the file.
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

# Sets mc_count to the number of CPUs that this pod may run on, from a list such as 0-2,5.
count_cpus() {
  while read -r mc_key mc_list; do
    [ "$mc_key" != Cpus_allowed_list: ] || break
  done </proc/self/status
  mc_count=0 mc_list=$mc_list,
  while [ -n "$mc_list" ]; do
    mc_range=${mc_list%%,*} mc_list=${mc_list#*,}
    mc_count=$((mc_count + ${mc_range#*-} - ${mc_range%-*} + 1))
  done
}
