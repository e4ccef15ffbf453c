# shellcheck shell=sh disable=SC2034,SC2154 # mc_* come from settings.sh and environment.sh
# Keeps Flux's state when the lead ends: in an archive, or in a folder on a claim. For the entrypoint.

# bytes of Flux's content store from which on the end of an older Flux's lead compacts it
LARGE_STORE_BYTES=268435456
mc_restore_words=

# Succeeds if the lead of another pod has the queue of this one.
keeps_queue() { [ -n "$mc_archive$mc_state_volume" ]; }

# Restores the state from the archive. At the end Flux dumps it to a new file beside the last good one.
use_archive() {
  [ -n "$mc_archive" ] || return 0
  [ -z "${mc_archive%/*}" ] || mkdir -p "${mc_archive%/*}"
  if [ -e "$mc_archive" ] && [ -z "$mc_has_state" ]; then
    mc_restore_words="-o-Scontent.restore=\"\$mc_archive\""
    say "the state of $(date -r "$mc_archive" '+%Y-%m-%d %H:%M:%S %Z') is restored from $mc_archive"
  fi
  # this file exists until a dump is complete
  begun=$mc_archive.begun
  if [ -e "$begun" ] && [ -z "$mc_was_killed" ]; then
    warn "a lead that began at $(date -r "$begun" '+%Y-%m-%d %H:%M:%S %Z') saved no state: its jobs are lost"
  fi
  touch "$begun" 2>/dev/null || true
  mc_start_words="$mc_start_words -o-Scontent.dump=\"\$mc_archive.new.tgz\""
  rm -f "$mc_archive.new.tgz"
}

# Says that this lead's queue begins anew although there was a lead before: Kubernetes counts the pods of this index that
# failed (batch/v1), and nothing kept the queue. The file is for state.py.
tell_of_former_lead() {
  lost=$((${MINICLUSTER_FAILURES:-0} + ${MINICLUSTER_IGNORED_FAILURES:-0}))
  [ "$lost" -gt 0 ] && ! keeps_queue || return 0
  lost="a former lead was lost (pod number $lost of this index), and its queue with it"
  warn "$lost: \`minicluster status\` says why; state.capacity keeps a queue"
  echo "$lost: state.capacity keeps a queue" >"$mc_state/run/former-lead.problem"
}

# Keeps the state on a volume, from which the next lead continues.
use_state_volume() {
  [ -n "$mc_state_volume" ] || return 0
  mkdir -p "$MINICLUSTER_HOME/state/$mc_name/history"
  ln -sfn "$MINICLUSTER_HOME/state/$mc_name/history" "$mc_state/run/history"
  mc_start_words="$mc_start_words -o-Sstatedir=\"\$MINICLUSTER_HOME/state/\$mc_name\""
  compact_store "$MINICLUSTER_HOME/state/$mc_name"
}

# with FOLDER: compacts Flux's content store there, in which each job leaves some 25 KiB behind. The end of a lead dumps
# what is still needed, and the next one begins with that dump if it is complete. From 0.87 on Flux can do so while jobs
# run: kvs_cleanup.py.
compact_store() {
  if [ -h "$1/dump/RESTORE" ] && "$mc_flux" python -m tarfile -l "$1/dump/RESTORE" >/dev/null 2>&1; then
    mc_restore_words='-o-Scontent.restore=auto'
  else
    rm -rf "$1/dump"
  fi
  case $version in 0.[5-7][0-9].* | 0.8[0-6].*) ;; *) return 0 ;; esac
  [ -e "$1/content.sqlite" ] || return 0
  [ "$(wc -c <"$1/content.sqlite")" -le "$LARGE_STORE_BYTES" ] || mc_start_words="$mc_start_words -o-Scontent.dump=auto"
}

# Replaces the archive by the dump only when the dump is complete: a kill may have cut it short.
keep_archive() {
  [ -n "$mc_archive" ] || return 0
  if "$mc_flux" python -m tarfile -l "$mc_archive.new.tgz" >/dev/null 2>&1; then
    mv -f "$mc_archive.new.tgz" "$mc_archive"
    rm -f "$mc_archive.begun"
  else
    warn "the state was not dumped: $mc_archive is unchanged"
  fi
}
