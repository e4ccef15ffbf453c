# shellcheck shell=sh disable=SC2034 # for the scripts that source this
# Chooses the shell for texts of the user: bash if the image has it, else sh.

if command -v bash >/dev/null; then mc_shell='bash'; else mc_shell='sh'; fi

# Prints the path of that shell. In busybox, `command -v sh` prints no path.
shell_path() { command -v bash || echo /bin/sh; }

# with the script's arguments: runs the script again in bash, because the snippets that it sources may need bash.
become_bash() { [ "$mc_shell" = sh ] || [ -n "${BASH_VERSION:-}" ] || exec bash "$0" "$@"; }
