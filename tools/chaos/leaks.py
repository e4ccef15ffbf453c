"""Measures the resources that pods hold, and finds those that grew."""

from collections.abc import Iterator, Mapping, Sequence

from tools.chaos.jobs import SHARED
from tools.releases import FluxRelease


def footprint(cluster: FluxRelease, size: int) -> list[dict[str, int]]:
    """Return the resources of each pod.

    The cluster's files, its broker's open files and memory (KiB), processes, and what the shared volume has (KiB).
    Without the copy of our programs, to which Python adds its bytecode.
    """
    script = (
        "p=$(/mnt/flux/bin/flux getattr broker.pid); find /mnt/flux -xdev -type f ! -path '/mnt/flux/.files-*' | wc -l;"
        " ls /proc/$p/fd | wc -l;"
        f" sed -n 's/^VmRSS:[^0-9]*//p' /proc/$p/status; ls -d /proc/[0-9]* | wc -l; du -sk {SHARED}"
    )
    keys = ("files", "open files", "memory", "processes", "volume")
    shown = [cluster.exec(index, "/bin/sh", "-c", script) for index in range(size)]
    return [dict(zip(keys, (int(line.split()[0]) for line in text.splitlines()), strict=True)) for text in shown]


def leaks(before: Sequence[Mapping[str, int]], after: Sequence[Mapping[str, int]], jobs: int) -> Iterator[str]:
    """Yield each resource that grew by more than a queue of so many kept jobs needs: 170 KiB for each."""
    allowed = {"files": 20, "open files": 20, "memory": max(65536, 256 * jobs), "processes": 10, "volume": 65536}
    for index, (old, new) in enumerate(zip(before, after, strict=True)):
        for key, more in allowed.items():
            if new[key] > old[key] + more:
                yield f"pod {index}: {key} grew from {old[key]} to {new[key]}"
