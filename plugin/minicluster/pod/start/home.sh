# shellcheck shell=sh disable=SC2154 # mc_shell is in shell.sh
# Sets HOME, USER, SHELL and TMPDIR, which programs expect, and which a user or an image may lack.

# with FOLDER: sets SHELL, USER, HOME and TMPDIR if they are missing or unusable, and makes folders below FOLDER. The
# user may have any uid, no passwd entry and no writable file system. The image may lack bash, which is the broker's
# default for its user's shell, and which the lead's rc scripts call by name.
find_home() {
  [ -x "${SHELL:-}" ] || SHELL=$mc_shell
  export SHELL
  if ! id -un >/dev/null 2>&1; then
    # workflow tools need a user name
    USER=${USER:-flux}
    LOGNAME=${LOGNAME:-$USER}
    export USER LOGNAME
  fi
  if ! [ -d "${HOME:-}" ] || ! [ -w "$HOME" ] || [ "$HOME" = / ]; then
    HOME=$1/home
    export HOME
    mkdir -p "$HOME"
  fi
  if ! [ -w "${TMPDIR:-/tmp}" ]; then
    TMPDIR=$1/tmp
    export TMPDIR
    mkdir -p "$TMPDIR"
  fi
}
