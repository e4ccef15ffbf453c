# shellcheck shell=sh
# Wall time without /usr/bin/time, which images lack.

centiseconds() {
  read -r up _ </proc/uptime
  echo "${up%.*}${up#*.}"
}

# timed NAME BEGIN: a FLUXTIME line, [hours:]minutes:seconds.hundredths as /usr/bin/time's %E
timed() {
  elapsed=$(($(centiseconds) - $2))
  seconds=$((elapsed / 100))
  if [ "$seconds" -ge 3600 ]; then
    printf 'FLUXTIME %s wall time %d:%02d:%02d\n' "$1" $((seconds / 3600)) $((seconds / 60 % 60)) $((seconds % 60))
  else
    printf 'FLUXTIME %s wall time %d:%02d.%02d\n' "$1" $((seconds / 60)) $((seconds % 60)) $((elapsed % 100))
  fi
}
