# shellcheck shell=sh disable=SC2154 # mc_* come from environment.sh
# munged of the image, with the key of flux.mungeSecret. For the entrypoint.

start_munge() {
  [ -e "$MINICLUSTER_HOME/munge/munge.key" ] || return 0
  if ! command -v munged >/dev/null; then
    warn "flux.mungeSecret is set and this image has no munged: use an image that has it, or drop the secret"
    end 127
  fi
  secret_file munge/munge.key
  # where clients look for munged: a volume of the chart's, or under one of the user's
  mkdir -p /run/munge 2>/dev/null || true
  # --force: the volumes of a pod may be written to by all that runs in it, which munged takes for insecure. What it
  # warns of then is said only when it does not start.
  if ! munged --force --key-file="$mc_state/munge/munge.key" --pid-file="$mc_state/munge/pid" \
    --log-file="$mc_state/munge/log" --seed-file="$mc_state/munge/seed" 2>"$mc_state/munge/said"; then
    cat "$mc_state/munge/said" >&3
    warn "munged does not start as user $(id -u): see the lines above"
    end 1
  fi
}
