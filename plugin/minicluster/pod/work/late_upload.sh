#!/bin/sh
# late_upload.sh PLACE RANK: on the lead, brings local code (--upload) to a node that joined after it came (put_back.py).
# shellcheck disable=SC2016 # what the node's shell expands
set -f
cd "$MINICLUSTER_HOME/uploads" || exit
there=$MINICLUSTER_HOME/uploads/$1 others=
[ ! -e "$1.json" ] || others=$1.json
# Takes the archive; a part of it is never in the place
TAKE='folder=${0%/*} place=${0##*/} new=$0.$$ PATH=${PATH:+$PATH:}/usr/bin:/bin
rm -f "$0.failed"
mkdir -p "$new" && tar -xf - -C "$new" && { [ -e "$0" ] || mv "$new/$place" "$0"; } || exit
[ ! -e "$new/$place.json" ] || mv -f "$new/$place.json" "$folder"
: >"$0.here"
rm -rf "$new"'
# shellcheck disable=SC2086 # into words
tar -cf - "$1" $others | flux exec -q -d / -r "$2" /bin/sh -c "$TAKE" "$there" ||
  flux exec -n -q -d / -r "$2" /bin/sh -c 'rm -rf "$0".[0-9]*; mkdir -p "${0%/*}"; : >"$0.failed"' "$there"
