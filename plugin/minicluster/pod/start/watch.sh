# shellcheck shell=sh disable=SC2154 # mc_* come from settings.sh and environment.sh
# Watches the connection of a worker's broker: by itself a broker notices only after up to 10 s that its lead has
# another one, and one that is ending waits for a lost lead for 60 s. For the entrypoint.

mc_newline='
'

# with FOLDER, /proc/net: looks once a second, as long as the broker runs, and more often at first, for a connection that
# may be lost soon. When one is gone, which may have a successor already, lost_lead.py sees to the broker.
watch_connection() {
  connections=' ' pause=0.2
  while :; do
    # without a pause it would take a whole CPU
    sleep "$pause" 3>&- || return 0
    tell_kills
    # for a look the kernel walks through the sockets of its machine: 6 ms. None before there can be a connection
    [ "$connections" != ' ' ] || broker_uri >/dev/null || continue
    before=$connections
    find_connections "$1"
    case $connections,$pause in ' ,0.2') pause=0.4 ;; ' ,0.4') pause=0.8 ;; *) pause=1 ;; esac
    has_lost_one || continue
    pause=0.2
    if [ -n "$mc_notify" ]; then tell_lost 3>&- & fi
    if uri=$(broker_uri); then
      FLUX_URI=$uri timeout 60 "$mc_flux" python "$mc_files/lost_lead.py" 3>&- &
    fi
  done
}

# with FOLDER: sets connections to the local addresses of those to a broker: the lead's, or that of the worker on the way
# there.
find_connections() {
  connections=' '
  for file in "$1/tcp" "$1/tcp6"; do
    [ -r "$file" ] || continue
    read_file "$file"
    mc_ifs=$IFS IFS=$mc_newline
    # shellcheck disable=SC2086 # into lines
    set -- "$1" $mc_text
    IFS=$mc_ifs
    for line; do
      # "NUMBER: LOCAL REMOTE STATE …": the brokers' port, and the state ESTABLISHED
      case $line in *":$mc_port_hex 01 "*) line=${line#*: } && connections="$connections${line%% *} " ;; esac
    done
  done
}

# with FILE: sets mc_text to its text. Line by line bash would seek after each, and then the kernel walks through all
# sockets of its machine again.
read_file() {
  # shellcheck disable=SC3045 # in bash alone
  if [ -n "${BASH_VERSION:-}" ]; then IFS= read -r -d '' mc_text <"$1" || true; else mc_text=$(cat "$1"); fi
}

# Succeeds if one that was there before is gone.
has_lost_one() {
  for each in $before; do
    case "$connections" in *" $each "*) ;; *) return 0 ;; esac
  done
  return 1
}
