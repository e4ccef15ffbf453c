# shellcheck shell=sh disable=SC2154 # pods.py sets here, python and broker (broker_stand_in.py)
# A stand-in for flux without brokers, which pods.py puts into a pod as a script of /bin/sh: the scripts call flux
# thousands of times, and a Python takes ten times as long to start. It records each call, and then runs the script of
# the test for this call, or does the simplest thing that Flux does.
#
# In the folder `here` of the pod: `calls` has the name of a file of `called` for each call, with its environment and its
# words; `plays` has the test's shell texts, each named after the first words of a call. An image's PATH may
# have no command, so each has its path.

note() {
  file=$$
  # a script of the test that calls flux by `exec` has the same process id
  while [ -e "$here/called/$file" ]; do file=$file-; done
  {
    /bin/cat /proc/$$/environ
    printf '\0'
    [ $# = 0 ] || printf '%s\0' "$@"
  } >"$here/called/$file"
  echo "$file" >>"$here/calls"
}

# find_play WORDS…: sets `play` to the test's text for a call, the one whose name has the most words, or to "". Of a path
# the last part counts.
find_play() {
  play='' name='' count=0
  for word in "$@"; do
    last=${word##*/}
    name="$name${name:+ }${last:-$word}"
    [ ! -e "$here/plays/$name" ] || play=$here/plays/$name
    count=$((count + 1))
    [ $count -lt 5 ] || return 0
  done
}

# submit WORDS…: acts as `flux run` and `flux submit --watch`
submit() {
  # minicluster.lua does this
  for name in $(/usr/bin/env | /bin/sed -n 's/^MINICLUSTER_\(PYTHON[A-Z_]*\)=.*/\1/p'); do
    [ "$name" != PYTHONPATH ] || continue
    eval "export $name=\"\$MINICLUSTER_$name\""
    unset "MINICLUSTER_$name"
  done
  while [ $# -gt 0 ]; do
    case $1 in
      -N | -n | -o | -c) shift 2 ;;
      -*) shift ;;
      *) break ;;
    esac
  done
  "$@"
}

note "$@"
find_play "$@"
[ -z "$play" ] || exec /bin/sh "$play" "$@"
verb=${1-}
[ $# = 0 ] || shift
case $verb in
  --version) printf 'commands:    \t\t0.88.0\nlibflux-core:\t0.88.0\n' ;;
  start) exec "$python" -IS "$broker" "$here" "$@" ;;
  run | submit) submit "$@" ;;
  config) echo true ;;
  R) echo '{"version": 1, "execution": {"R_lite": [{"rank": "0", "children": {"core": "0-3"}}]}}' ;;
  python)
    case ${1##*/} in
      -m | orphans.py) exec "$python" "$@" ;;
    esac
    ;;
  # it answers while a broker listens
  getattr) /bin/grep -qF " ${FLUX_URI#local://}" /proc/net/unix ;;
  event) [ "${1-}" != sub ] ;; # the instance ended
  exec | dmesg | jobtap | overlay | resource | uptime) ;;
  *)
    echo "the stand-in for flux does not know $verb $*" >&2
    exit 99
    ;;
esac
