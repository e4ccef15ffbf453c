"""The programs that run in the pods, in a folder for each purpose.

- ``start``: how each container starts, and what it needs before its broker or its command
- ``work``: the lead's work, and what jobs run in
- ``leave``: how a pod stops, what happens to its jobs, and how the next lead repairs what a killed one left
- ``agent``: the autoscaler, what holds busy pods, and the metrics
- ``view``: the copy of the Flux view, and the environment to use Flux
- ``queue``: what Flux knows of nodes and jobs, for the other Python programs

In a pod they are in one folder and find each other by file name, so no two have the same name.
"""

from collections.abc import Mapping
from pathlib import Path


def programs() -> Mapping[str, Path]:
    """Return the files by name, sorted."""
    files = sorted(Path(__file__).parent.glob("[a-z]*/*"), key=lambda file: file.name)
    return {file.name: file for file in files if file.is_file()}
