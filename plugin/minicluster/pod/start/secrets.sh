# shellcheck shell=sh disable=SC2154 # mc_* come from environment.sh
# Makes private copies of the pod's Secrets, and starts munged. For the entrypoint.

# with FILE: copies a key. Flux and munge accept it only if it belongs to their user and nobody else can read it.
copy_secret() {
  [ -d "$mc_state/${1%/*}" ] || mkdir -p "$mc_state/${1%/*}"
  [ ! -e "$mc_state/$1" ] || rm -f "$mc_state/$1"
  (umask 0377 && exec cat "$MINICLUSTER_HOME/$1" >"$mc_state/$1")
}

# Starts the image's munged with the key of flux.mungeSecret.
start_munge() {
  [ -e "$MINICLUSTER_HOME/munge/munge.key" ] || return 0
  if ! command -v munged >/dev/null; then
    warn "flux.mungeSecret is set and this image has no munged: use an image that has it, or drop the secret"
    exit_with 127
  fi
  copy_secret munge/munge.key
  # clients look for munged in this folder, which is a volume of the chart or of the user
  mkdir -p /run/munge 2>/dev/null || true
  # --force: munged calls a pod's volumes insecure because every container can write to them. Its warnings are
  # printed only when it does not start.
  if ! munged --force --key-file="$mc_state/munge/munge.key" --pid-file="$mc_state/munge/pid" \
    --log-file="$mc_state/munge/log" --seed-file="$mc_state/munge/seed" 2>"$mc_state/munge/errors"; then
    cat "$mc_state/munge/errors" >&3
    warn "munged does not start as user $(id -u): see the lines above"
    exit_with 1
  fi
}
