#!/bin/sh
# quorum.sh NAME SECONDS: the test of a release (`helm test`). The lead is ready once it has its quorum, and then NAME
# resolves. Polls for up to SECONDS.
set -eu

PATH=${PATH:+$PATH:}/usr/bin:/bin

resolves() {
  if command -v getent; then getent hosts "$1"; else nslookup "$1"; fi
} >/dev/null 2>&1

end=$(($(date +%s) + $2))
until resolves "$1"; do
  if [ "$(date +%s)" -ge "$end" ]; then
    echo "no quorum within $2 s: the lead broker is not ready (minicluster status, minicluster logs), or the job has ended" >&2
    exit 1
  fi
  sleep 0.5
done
echo "the cluster has its quorum"
