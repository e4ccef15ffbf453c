# shellcheck shell=sh disable=SC2154 # set by environment.sh
# What sbatch, srun and the others are: the files of their names source it. srun starts steps of the job that it is in;
# the others see the MiniCluster, also from within a job.

# shellcheck source=../view/flux-view.sh
. "$MINICLUSTER_HOME/minicluster/flux-view.sh"
case ${0##*/} in srun) ;; *) FLUX_URI=$mc_socket_uri ;; esac
MINICLUSTER_SLURM_NAME=$mc_name
export FLUX_URI MINICLUSTER_SLURM_NAME
# flux python needs all of our environment; for tasks minicluster.lua gives the rest back
# shellcheck disable=SC2086 # into names
set_aside $mc_of_python
exec "$mc_flux" python "$mc_files/slurm.py" "${0##*/}" "$@"
