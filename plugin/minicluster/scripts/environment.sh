# shellcheck shell=sh disable=SC2034,SC2154 # settings come from settings.sh and go to who sources this
# The environment of Flux: sourced by the other scripts, and through flux-view.sh by people and jobs.
# MINICLUSTER_HOME is set on the container.

mc_files=$MINICLUSTER_HOME/minicluster
mc_state=$MINICLUSTER_HOME/config
mc_run=$mc_state/run/flux
mc_rc_bin=$mc_state/rc-bin
mc_socket_uri=local://$mc_run/local

# shellcheck source=/dev/null
. "$mc_files/settings.sh"

# The view's bin/ holds a Python and more that must not hide the image's own: only flux gets into PATH.
# The broker's own stand-in for a missing bash is none of the jobs'.
PATH=${PATH%":$mc_rc_bin"}
case ":$PATH:" in
*":$MINICLUSTER_HOME/bin:"*) ;;
*) PATH=$MINICLUSTER_HOME/bin:$PATH ;;
esac
export PATH

if [ -n "$mc_view" ]; then
  mc_flux=$mc_view/bin/flux
  # Flux's own Python commands find the view's modules (a Spack view has them apart from its Python).
  for mc_python in "$mc_view"/lib/python3*/site-packages; do
    FLUX_PYTHONPATH_PREPEND=${mc_python_path:-$mc_python}
  done
  # Fluxion has a prefix of its own in a Spack view: Flux looks for its modules and scripts there.
  if [ -e "$mc_view/etc/flux/rc1.d/01-sched-fluxion" ]; then
    FLUX_RC_EXTRA=$mc_view/etc/flux
    FLUX_MODULE_PATH_PREPEND=$mc_view/lib/flux/modules
    export FLUX_RC_EXTRA FLUX_MODULE_PATH_PREPEND
  fi
else
  FLUX_PYTHONPATH_PREPEND=$mc_python_path
  mc_flux=$(PATH=${PATH#"$MINICLUSTER_HOME/bin:"} command -v flux || true)
fi
[ -z "${FLUX_PYTHONPATH_PREPEND:-}" ] || export FLUX_PYTHONPATH_PREPEND
