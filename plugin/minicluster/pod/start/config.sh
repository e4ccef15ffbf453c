# shellcheck shell=sh disable=SC2154 # mc_* come from settings.sh and environment.sh
# Changes the configuration of this pod's broker. For the entrypoint.

mc_config=

# with EXPRESSION: lets the broker read a copy of broker.toml that sed has changed.
edit_config() {
  sed "$1" "${mc_config:-$mc_files/broker.toml}" >"$mc_state/etc/flux/broker.toml.new"
  # the last --config-path counts
  [ -n "$mc_config" ] || mc_start_words="$mc_start_words -o--config-path=\"\$mc_config\""
  mc_config=$mc_state/etc/flux/broker.toml
  mv -f "$mc_config.new" "$mc_config"
}
