#!/bin/sh
# theirs.sh PROGRAM [WORD…]: the initial program of an instance that a job started gets back the variables that
# flux-broker set aside, and those of Slurm, which Flux's broker removes (slurm.lua).
set -eu

# shellcheck source=../view/world.sh
. "$MINICLUSTER_HOME/minicluster/world.sh"
# shellcheck disable=SC2086 # into names
give_back PATH $mc_of_python ${MINICLUSTER_SLURM_NAMES:-}
# flux.sh, which sets them aside, before the flux of the view
PATH=$MINICLUSTER_HOME/bin:$PATH
export PATH
# one word is a command line, unless it is a program, as for Flux
if [ $# = 1 ] && ! { [ -f "$1" ] && [ -x "$1" ]; }; then exec "${SHELL:-/bin/sh}" -c "$1"; fi
exec "$@"
