# shellcheck shell=sh disable=SC2154 # mc_* come from settings.sh and environment.sh
# The state of Flux that outlives a lead: an archive, or a folder on a claim.

# Restores the state from the archive and has it dumped at the end, beside the last good one.
use_archive() {
  [ -n "$mc_archive" ] || return 0
  [ -z "${mc_archive%/*}" ] || mkdir -p "${mc_archive%/*}"
  [ ! -e "$mc_archive" ] || mc_start_words="$mc_start_words -Scontent.restore=\"\$mc_archive\""
  mc_start_words="$mc_start_words -Scontent.dump=\"\$mc_archive.new.tgz\""
  rm -f "$mc_archive.new.tgz"
}

# The state of Flux on a volume, from which a lead that comes back goes on.
use_state_volume() {
  [ -n "$mc_state_volume" ] || return 0
  mkdir -p "$MINICLUSTER_HOME/state/$mc_name"
  mc_start_words="$mc_start_words -Sstatedir=\"\$MINICLUSTER_HOME/state/\$mc_name\""
}

# A dump replaces the last good one only when it is whole; it may have been cut short by a kill.
keep_archive() {
  [ -n "$mc_archive" ] || return 0
  if "$mc_flux" python -m tarfile -l "$mc_archive.new.tgz" >/dev/null 2>&1; then
    mv -f "$mc_archive.new.tgz" "$mc_archive"
  else
    warn "the state was not dumped: $mc_archive is what it was"
  fi
}
