"""The programs of the pods: this version's, and those of a live release, which the chart hands over."""

from collections.abc import Mapping
from functools import cache

from minicluster import pod
from minicluster.render.upgrade import NOT_OF_BROKERS

Files = Mapping[str, str]


@cache
def of_brokers() -> Files:
    """Return the programs of the brokers' pods and services by file name."""
    return {name: text for name, text in pod.shipped().items() if name not in NOT_OF_BROKERS}


@cache
def of_others() -> Files:
    """Return the programs of other pods, which are new with each upgrade. Every cluster has its own."""
    return {name: text for name, text in pod.shipped().items() if name in NOT_OF_BROKERS}
