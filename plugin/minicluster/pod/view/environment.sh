# shellcheck shell=sh disable=SC2034,SC2154 # settings come from settings.sh and go to the script that sources this
# The environment of Flux: where the view has it, its paths and its variables. The other scripts source it; people and
# jobs source flux-view.sh. The container sets MINICLUSTER_HOME.

mc_files=$MINICLUSTER_HOME/minicluster
mc_state=$MINICLUSTER_HOME/config
mc_run=$mc_state/run/flux
mc_rc_bin=$mc_state/rc-bin
# the folder of Slurm's commands
mc_slurm=$MINICLUSTER_HOME/slurm
# stop.sh writes this file
mc_told_to_stop=$MINICLUSTER_HOME/told-to-stop
mc_socket_uri=local://$mc_run/local

# shellcheck source=world.sh
. "$mc_files/world.sh"
# shellcheck source=/dev/null
. "$mc_files/settings.sh"

# Only flux of the view is in PATH: the view's bin/ also has a Python and other programs that must not hide the image's
# own. Slurm's commands come last: those of the image, for a cluster outside, come first.
find_flux() {
  case ":${PATH-}:" in
  *":$MINICLUSTER_HOME/bin:"*) ;;
  *) PATH=$MINICLUSTER_HOME/bin${PATH:+:$PATH} ;;
  esac
  case :$PATH: in *":$mc_slurm:"*) ;; *) PATH=$PATH:$mc_slurm ;; esac
  export PATH
}
find_flux

# with LIST FOLDER: sets mc_list to the list of folders, with this one appended unless it has it.
append_folder() { case ":$1:" in *":$2:"*) mc_list=$1 ;; *) mc_list=${1:+$1:}$2 ;; esac; }

# In a Spack view Fluxion has a prefix of its own: this tells Flux where Fluxion's modules, commands and start-up files
# are. A Flux with `flux modprobe` reads modprobe/; an older one runs rc1.d/ of FLUX_RC_EXTRA.
find_fluxion() {
  append_folder "${FLUX_MODULE_PATH_PREPEND:-}" "$mc_view/lib/flux/modules"
  FLUX_MODULE_PATH_PREPEND=$mc_list
  append_folder "${FLUX_EXEC_PATH_PREPEND:-}" "$mc_view/libexec/flux/cmd"
  FLUX_EXEC_PATH_PREPEND=$mc_list
  append_folder "${FLUX_MODPROBE_PATH_APPEND:-}" "$mc_view/etc/flux/modprobe"
  FLUX_MODPROBE_PATH_APPEND=$mc_list
  append_folder "${FLUX_RC_EXTRA:-}" "$mc_view/etc/flux"
  FLUX_RC_EXTRA=$mc_list
  export FLUX_MODULE_PATH_PREPEND FLUX_EXEC_PATH_PREPEND FLUX_MODPROBE_PATH_APPEND FLUX_RC_EXTRA
}

if [ -n "$mc_view" ]; then
  mc_flux=$mc_view/bin/flux
  # for Flux's own Python commands: in a Spack view their modules are not where its Python looks
  for mc_python in "$mc_view"/lib/python3*/site-packages; do
    FLUX_PYTHONPATH_PREPEND=${mc_python_path:-$mc_python}
  done
  if [ -z "$mc_simple" ] && [ -e "$mc_view/etc/flux/rc1.d/01-sched-fluxion" ]; then find_fluxion; fi
else
  FLUX_PYTHONPATH_PREPEND=$mc_python_path
  mc_flux=$(PATH=${PATH#"$MINICLUSTER_HOME/bin"} && PATH=${PATH#:} && find_tools && command -v flux || true)
fi
[ -z "${FLUX_PYTHONPATH_PREPEND:-}" ] || export FLUX_PYTHONPATH_PREPEND
# an older Flux loads Fluxion by its rc1.d/, whatever broker.toml says
[ -z "$mc_simple" ] || export FLUXION_RESOURCE_RC_NOOP=1 FLUXION_QMANAGER_RC_NOOP=1
# the shells of jobs read minicluster.lua
append_folder "${FLUX_SHELL_RC_PATH:-}" "$mc_files"
FLUX_SHELL_RC_PATH=$mc_list
export FLUX_SHELL_RC_PATH

# with MODE, CODE: tells what happens, if the values ask for it (notify.py).
tell() {
  [ -n "$mc_notify" ] || return 0
  set -- "$mc_files/notify.py" "$1" "$2" "$mc_notify_format" "$mc_name" "${MINICLUSTER_NAMESPACE:-$mc_namespace}"
  # shellcheck disable=SC2086 # words
  "$mc_flux" python "$@" $mc_notify
}
