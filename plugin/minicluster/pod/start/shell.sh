# shellcheck shell=sh disable=SC2034 # for the scripts that source this
# The shell for texts of the user: bash where the image has it, else sh.

if command -v bash >/dev/null; then mc_shell='bash'; else mc_shell='sh'; fi

# Prints its path. busybox sh knows none for `sh`.
shell_path() { command -v bash || echo /bin/sh; }

# Snippets may be written for bash, so the scripts that source them run in it too. With the script's arguments.
become_bash() { [ "$mc_shell" = sh ] || [ -n "${BASH_VERSION:-}" ] || exec bash "$0" "$@"; }
