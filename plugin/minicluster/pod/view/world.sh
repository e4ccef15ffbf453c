# shellcheck shell=sh disable=SC2034,SC2163 # for the scripts that source this; names of variables
# Whose variables a program has. Those of the image, of the values and of the snippets are for the work. Some of them
# would lead our programs and Flux astray: these are set aside while ours run, as MINICLUSTER_NAME. For all scripts.

# those that change how another Python than the work's own starts (python --help-env)
mc_of_python='PYTHONHOME PYTHONPLATLIBDIR PYTHONSAFEPATH PYTHONSTARTUP PYTHONINSPECT PYTHONOPTIMIZE PYTHONWARNINGS
PYTHONIOENCODING PYTHONUTF8 PYTHONCOERCECLOCALE PYTHONHASHSEED PYTHONMALLOC PYTHONMALLOCSTATS PYTHONTRACEMALLOC
PYTHONDEVMODE PYTHONDEBUG PYTHONVERBOSE PYTHONPROFILEIMPORTTIME PYTHONDUMPREFS PYTHONINTMAXSTRDIGITS
PYTHONWARNDEFAULTENCODING PYTHONPERFSUPPORT PYTHON_PERF_JIT_SUPPORT PYTHON_GIL PYTHON_JIT PYTHON_PRESITE
PYTHON_FROZEN_MODULES'

mc_default_ifs=$IFS

# Lets our own programs find their tools after those of the image, whose PATH may name its application alone.
find_tools() { PATH=${PATH:+$PATH:}/usr/bin:/bin; }

# with NAMES: sets variables aside. Sets mc_aside if there were any.
set_aside() {
  for mc_variable; do
    eval "[ -n \"\${$mc_variable+set}\" ] || continue; MINICLUSTER_$mc_variable=\$$mc_variable"
    export "MINICLUSTER_$mc_variable"
    unset "$mc_variable"
    mc_aside=1
  done
}

# with NAMES: gives variables back that were set aside.
give_back() {
  for mc_variable; do
    eval "[ -n \"\${MINICLUSTER_$mc_variable+set}\" ] || continue; $mc_variable=\$MINICLUSTER_$mc_variable"
    export "$mc_variable"
    unset "MINICLUSTER_$mc_variable"
  done
}

# Begins a part of ours. Snippets run in our shell, and may also have changed how it reads.
our_world() {
  IFS=$mc_default_ifs
  set +fCvx
  # shellcheck disable=SC3044 # in bash alone
  [ -z "${BASH_VERSION:-}" ] || shopt -u failglob nullglob dotglob
  [ -z "${MINICLUSTER_PATH+set}" ] || return 0
  PATH=${PATH-}
  unset MINICLUSTER_PYTHONPATH
  # shellcheck disable=SC2086 # into names
  set_aside PATH PYTHONPATH GLOBIGNORE $mc_of_python
  PATH=$MINICLUSTER_PATH
  find_tools
  export PATH
}

# Begins a part of the work: a snippet, a command.
their_world() {
  [ -n "${MINICLUSTER_PATH+set}" ] || return 0
  # Flux has put its own modules there
  unset PYTHONPATH
  # shellcheck disable=SC2086 # into names
  give_back PATH SHELL PYTHONPATH GLOBIGNORE $mc_of_python
  # minicluster.lua and flux-broker compare with it
  MINICLUSTER_PYTHONPATH=${PYTHONPATH:-}
  export MINICLUSTER_PYTHONPATH
}
