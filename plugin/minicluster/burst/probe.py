"""Asks whether the lead broker answers at an address, by a CURVE handshake with a certificate.

No message is sent: all that the lead sees is a connection that opens and closes.
"""

import time
from enum import Enum

from minicluster.render import curve


class Handshake(Enum):
    """The result of a handshake."""

    LEAD = "a broker with this certificate"
    OTHER = "something with another certificate"
    NONE = "nothing that speaks CURVE, or nothing at all"


def ask(endpoint: str, certificate: str, seconds: float = 5.0) -> Handshake:
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
