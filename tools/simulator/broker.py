"""The brokers of the model, and the service of the one on rank 0."""

from dataclasses import dataclass
from types import SimpleNamespace

from tools.simulator.clock import Process


class Service:
    """A service on rank 0: requests wait for the program that answers them."""

    def __init__(self, process: Process) -> None:
        self.process, self.requests = process, list[SimpleNamespace]()


@dataclass
class Broker:
    """A broker that runs: connected from its start on, online once it has joined."""

    since: float
    is_online: bool = False
