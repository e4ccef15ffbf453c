#!/bin/sh
# $SHELL of a broker that a job starts (batch, alloc): runs its initial program with the image's PYTHONPATH, without
# what flux puts before it, and with the job's own SHELL.
case ${PYTHONPATH:-} in
"${FLUX_PYTHONPATH_PREPEND:-}") unset PYTHONPATH ;;
"${FLUX_PYTHONPATH_PREPEND:-}":*) PYTHONPATH=${PYTHONPATH#"$FLUX_PYTHONPATH_PREPEND:"} ;;
esac
SHELL=$MINICLUSTER_SHELL
unset MINICLUSTER_SHELL
exec "$SHELL" "$@"
