"""Where hosts outside the root's cluster reach its lead broker, and whether it answers there, by a CURVE handshake."""

import ipaddress
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from minicluster.errors import BurstError
from minicluster.render import curve
from minicluster.render.constants import BROKER_PORT
from minicluster.render.model import MiniClusterModel


@dataclass(frozen=True)
class Address:
    """Host and port of the lead broker; an IPv6 host is in brackets."""

    host: str
    port: int

    def __str__(self) -> str:
        """Return HOST:PORT, as in a ZeroMQ endpoint."""
        return f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str, port: int) -> "Address":
        """Return the address of HOST, with this port, or of HOST:PORT. Raises BurstError when it is not one."""
        match = re.fullmatch(r"(\[[0-9a-fA-F:.]+\]|[-.a-zA-Z0-9]+)(?::([0-9]{1,5}))?", text)
        number = int(match[2] or port) if match else 0
        if not match or not 0 < number < 65536:
            raise BurstError(f"{text!r} is not an address: write HOST or HOST:PORT, an IPv6 host in brackets")
        return cls(match[1], number)


def has_port(text: str) -> bool:
    """Tell whether an address names a port."""
    return re.search(r"[^:\]]:[0-9]+$|\]:[0-9]+$", text) is not None


def service_port(root: MiniClusterModel, service: Mapping[str, Any]) -> int:
    """Return the port by which the lead is reached from outside: its Service's, else that of the values."""
    ports = service.get("spec", {}).get("ports", [{}])
    if service.get("spec", {}).get("type") == "LoadBalancer":
        return BROKER_PORT
    expose = root.flux["bursting"]["expose"]
    return int(ports[0].get("nodePort") or (expose["nodePort"] if expose["type"] == "NodePort" else 0) or BROKER_PORT)


def of_service(
    root: MiniClusterModel, service: Mapping[str, Any], pod: Mapping[str, Any], node: Mapping[str, Any]
) -> Address:
    """Return the address that the lead's Service has outside: its load balancer's, or that of its Kubernetes node.

    A Kubernetes node's external address is preferred to the pod's ``hostIP``. An object that does not exist is empty.
    Raises BurstError when there is no address.
    """
    name = f"{root.name}-lead"
    if not service:
        raise BurstError(
            f"there is no Service {name}: install {root.name} with flux.bursting.expose.type, or give --address"
        )
    if service["spec"]["type"] == "LoadBalancer":
        for ingress in service.get("status", {}).get("loadBalancer", {}).get("ingress", []):
            if host := ingress.get("ip") or ingress.get("hostname"):
                return Address(_bracketed(host), BROKER_PORT)
        raise BurstError(f"the load balancer of the Service {name} has no address yet: wait for it, or give --address")
    external = [one["address"] for one in node.get("status", {}).get("addresses", []) if one["type"] == "ExternalIP"]
    host = next(iter(external), pod.get("status", {}).get("hostIP", ""))
    if not host:
        raise BurstError(
            f"the lead of {root.name} is not on a Kubernetes node yet: wait for its pod, or give --address"
        )
    return Address(_bracketed(host), service_port(root, service))


def _bracketed(host: str) -> str:
    try:
        return f"[{host}]" if ipaddress.ip_address(host).version == 6 else host
    except ValueError:
        return host


class Handshake(Enum):
    """The result of a handshake."""

    LEAD = "a broker with this certificate"
    OTHER = "something with another certificate"
    NONE = "nothing that speaks CURVE, or nothing at all"


def probe(endpoint: str, certificate: str, seconds: float = 5.0) -> Handshake:
    """Return who answers at HOST:PORT within some seconds. Raises CurveError for a text that is not a certificate."""
    import zmq  # noqa: PLC0415 - nobody else needs a socket
    from zmq.utils.monitor import recv_monitor_message  # noqa: PLC0415

    public, secret = curve.keys(certificate)
    end = time.monotonic() + seconds
    with zmq.Context() as context, context.socket(zmq.DEALER) as socket:
        socket.linger = 0
        socket.ipv6 = endpoint.startswith("[")
        # both ends of a Flux instance have the one certificate
        socket.curve_serverkey = socket.curve_publickey = public
        socket.curve_secretkey = secret
        monitor = socket.get_monitor_socket(
            zmq.EVENT_HANDSHAKE_SUCCEEDED
            | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
            | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
            | zmq.EVENT_HANDSHAKE_FAILED_AUTH
        )
        try:
            socket.connect(f"tcp://{endpoint}")
            if not monitor.poll(max(0, int((end - time.monotonic()) * 1000))):
                return Handshake.NONE
            event = recv_monitor_message(monitor)["event"]
            return Handshake.LEAD if event == zmq.EVENT_HANDSHAKE_SUCCEEDED else Handshake.OTHER
        finally:
            socket.disable_monitor()
            monitor.close()
