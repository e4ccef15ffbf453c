# shellcheck shell=sh disable=SC2034 # for the scripts that source this
# Chooses the shell for texts of the user, by its path: bash if the image has it, else sh.

mc_shell=$(command -v bash) || mc_shell=/bin/sh

# with the script's arguments: runs the script again in bash, because the snippets that it sources may need bash.
become_bash() { [ "$mc_shell" = /bin/sh ] || [ -n "${BASH_VERSION:-}" ] || exec "$mc_shell" "$0" "$@"; }
