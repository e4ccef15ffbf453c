# shellcheck shell=sh disable=SC2154 # mc_* come from settings.sh and environment.sh
# The state of Flux that outlives a lead: an archive, or a folder on a claim. For the entrypoint.

# Restores the state from the archive, and has Flux dump it at the end to a new file beside the last good one.
use_archive() {
  [ -n "$mc_archive" ] || return 0
  [ -z "${mc_archive%/*}" ] || mkdir -p "${mc_archive%/*}"
  [ ! -e "$mc_archive" ] || mc_start_words="$mc_start_words -o-Scontent.restore=\"\$mc_archive\""
  mc_start_words="$mc_start_words -o-Scontent.dump=\"\$mc_archive.new.tgz\""
  rm -f "$mc_archive.new.tgz"
}

# Keeps the state on a volume, from which the next lead continues.
use_state_volume() {
  [ -n "$mc_state_volume" ] || return 0
  mkdir -p "$MINICLUSTER_HOME/state/$mc_name"
  mc_start_words="$mc_start_words -o-Sstatedir=\"\$MINICLUSTER_HOME/state/\$mc_name\""
}

# Replaces the archive by the dump only when the dump is complete: a kill may have cut it short.
keep_archive() {
  [ -n "$mc_archive" ] || return 0
  if "$mc_flux" python -m tarfile -l "$mc_archive.new.tgz" >/dev/null 2>&1; then
    mv -f "$mc_archive.new.tgz" "$mc_archive"
  else
    warn "the state was not dumped: $mc_archive is unchanged"
  fi
}
