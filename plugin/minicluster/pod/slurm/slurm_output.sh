#!/bin/sh
# slurm_output.sh truncate|append OUTPUT ERROR PROGRAM [WORD…]: becomes a script of sbatch that writes to its files itself, as
# Slurm's does. Flux's shell would give it sockets, which cannot be opened as /dev/stdout or /dev/stderr.
set -u

mode=$1 output=$2 error=$3
shift 3
for file in "$output" "$error"; do
  [ "$mode" = append ] || [ -z "$file" ] || : >"$file" || exit 1
done
[ -z "$output" ] || exec >>"$output"
if [ -n "$error" ]; then exec 2>>"$error"; elif [ -n "$output" ]; then exec 2>&1; fi
exec "$@"
