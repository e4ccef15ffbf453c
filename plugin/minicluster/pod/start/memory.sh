# shellcheck shell=sh disable=SC2034,SC2154 # mc_* come from settings.sh and others
# What the container's memory allows (cgroups(7)): how much of its jobs the lead keeps in it, and whether the kernel
# kills processes. For the entrypoint.

# KiB of the broker's memory for the record of a job that has ended; records that a small limit allows, too
RECORD_KIB=54 LEAST_RECORDS=300
# MiB of memory from which on Flux's own size of the content store's cache, 16 MiB, is small beside it
MUCH_MIB=1024
# seconds between two looks at the kernel's kills
KILLS_PAUSE_SECONDS=10

# with FOLDER, /sys/fs/cgroup of version 1 or 2: sets mc_memory to the limit in MiB, "" without one, and mc_memory_events
# to the file that counts kills.
find_memory() {
  mc_memory_folder=$1
  mc_memory='' mc_memory_events=''
  for file in "$1/memory/memory.limit_in_bytes" "$1/memory.max"; do
    [ ! -r "$file" ] || read -r mc_memory <"$file" || true
  done
  for file in "$1/memory/memory.oom_control" "$1/memory.events"; do
    [ ! -r "$file" ] || mc_memory_events=$file
  done
  # version 1 has a number that is larger than any memory
  case $mc_memory in '' | *[!0-9]* | ????????????????*) mc_memory='' ;; *) mc_memory=$((mc_memory / 1048576)) ;; esac
  count_kills
  echo "$mc_kills" >"$mc_state/run/kills"
}

# Keeps fewer records of jobs than mc_records, if these would take more than an eighth of the memory. The values' own number
# stays.
limit_records() {
  [ -n "$mc_records" ] && [ -n "$mc_memory" ] || return 0
  records=$((mc_memory * 128 / RECORD_KIB))
  [ "$records" -ge "$LEAST_RECORDS" ] || records=$LEAST_RECORDS
  [ "$records" -ge "$mc_records" ] || edit_config "s/^inactive-num-limit = .*/inactive-num-limit = $records/"
}

# Lets the cache of Flux's content store be a 64th of the memory, if that is little: each job adds 30 KiB to it. A Flux
# before 0.77 ignores it.
limit_cache() {
  [ -z "$mc_own_config" ] && [ -n "$mc_memory" ] && [ "$mc_memory" -lt "$MUCH_MIB" ] || return 0
  edit_config "\$a\\
[modules.content]\\
args = [\"purge-target-size=$((mc_memory * 16384))\", \"purge-old-entry=2\"]"
}

# Sets mc_kills to the number of processes of this container that the kernel has killed for want of memory.
count_kills() {
  mc_kills=0
  [ -n "$mc_memory_events" ] || return 0
  while read -r key count; do
    [ "$key" != oom_kill ] || mc_kills=$count
  done <"$mc_memory_events"
}

# Says that the kernel has killed processes since this was said, and notes it for state.py.
tell_kills() {
  count_kills
  read -r told <"$mc_state/run/kills" || told=$mc_kills
  [ "$mc_kills" -gt "$told" ] || return 0
  echo "$mc_kills" >"$mc_state/run/kills"
  if [ "$mc_kills" = 1 ]; then what='a process'; else what="$mc_kills processes"; fi
  what="the kernel has killed $what of the container for want of memory${mc_memory:+, whose limit is $mc_memory MiB}"
  warn "$what: raise resources.limits.memory"
  echo "$mc_host: $what: raise resources.limits.memory" >"$mc_state/run/memory.problem"
}

# with FOLDER, /dev/shm: notes what is there before any job, for epilog.py.
note_shared_memory() { printf '%s\0' "$1"/* "$1"/.[!.]* >"$mc_state/run/shm"; }

# As long as the broker runs: takes away what ended jobs leave, and with flux.memoryReserve ends jobs that take it. Without
# a reserve it begins with the first job.
guard_node() {
  set -- "$mc_flux" python "$mc_files/guard.py" "$mc_memory_folder" "${mc_reserve:-0}" "$mc_host" "$mc_run" "$mc_own_shm" \
    "${mc_idle:-}"
  [ -n "$mc_reserve" ] || wait_for_job
  # its start must not slow that of the job
  [ -n "$mc_reserve" ] || ! command -v nice >/dev/null || set -- nice "$@"
  exec "$@" 2>&3 3>&-
}

# Waits for the first job, of which usage.lua tells.
wait_for_job() {
  begun=$mc_state/run/usage/begun
  [ -p "$begun" ] || mkfifo "$begun" || return 0
  exec 4<>"$begun"
  # of one that was before, with an earlier broker, nobody tells any more
  [ -e "$mc_state/run/jobs" ] || read -r _ <&4
  exec 4<&-
}

# Looks again and again, as long as the broker runs.
watch_kills() {
  while sleep "$KILLS_PAUSE_SECONDS"; do tell_kills; done
}
