# shellcheck shell=sh
# What programs expect of a user and of an image, and either may lack.

# with FOLDER: where what is missing is made. A user of any uid, perhaps without a passwd entry or a writable file
# system; an image perhaps without bash, which the broker takes for its user's shell, and the lead's rc scripts call by
# name. (To busybox sh has no path.)
find_home() {
  [ -x "${SHELL:-}" ] || SHELL=$(command -v bash || echo /bin/sh)
  export SHELL
  if ! id -un >/dev/null 2>&1; then
    # workflow tools want a name
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
