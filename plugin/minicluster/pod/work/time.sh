# shellcheck shell=sh
# Measures wall time for the FLUXTIME lines, without /usr/bin/time, which images may lack.

# Prints the time since the machine started, in 1/100 s.
centiseconds() {
  read -r up _ </proc/uptime
  echo "${up%.*}${up#*.}"
}

# timed NAME BEGIN: prints a FLUXTIME line, [hours:]minutes:seconds.hundredths like %E of /usr/bin/time
timed() {
  elapsed=$(($(centiseconds) - $2))
  seconds=$((elapsed / 100))
  if [ "$seconds" -ge 3600 ]; then
    printf 'FLUXTIME %s wall time %d:%02d:%02d\n' "$1" $((seconds / 3600)) $((seconds / 60 % 60)) $((seconds % 60))
  else
    printf 'FLUXTIME %s wall time %d:%02d.%02d\n' "$1" $((seconds / 60)) $((seconds % 60)) $((elapsed % 100))
  fi
}
