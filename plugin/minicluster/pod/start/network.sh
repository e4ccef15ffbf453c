# shellcheck shell=sh disable=SC2154 # mc_* come from settings.sh and environment.sh
# Chooses the IP family that the broker binds to: IPv6 in a pod that has only IPv6. For the entrypoint.

# with FOLDER, /proc/net: in a pod that has only IPv6, the broker reads a copy of broker.toml with enable_ipv6. That is
# not the default, because with enable_ipv6 Flux can't bind to an interface that has only IPv4
# (flux-config-bootstrap(5)). A broker.toml that names enable_ipv6 is used as it is.
choose_ip_family() {
  has_only_ipv6 "$1" || return 0
  case $(cat "$mc_files/broker.toml") in *enable_ipv6*) return 0 ;; esac
  edit_config '/^[[:space:]]*\[bootstrap]/a\
enable_ipv6 = true'
}

# with FOLDER: succeeds if IPv4 has no route, and an interface other than lo has a global IPv6 address (scope 00).
has_only_ipv6() {
  [ -r "$1/route" ] && [ -r "$1/if_inet6" ] || return 1
  # the first line is a heading, which is missing if there is no table of routes
  if { read -r _ && read -r _; } <"$1/route"; then return 1; fi
  while read -r _ _ _ scope _ interface; do
    [ "$scope" != 00 ] || [ "$interface" = lo ] || return 0
  done <"$1/if_inet6"
  return 1
}
