import socket
import threading
from collections.abc import Iterator

import pytest
import zmq
from minicluster.burst import address
from minicluster.burst.address import Handshake
from minicluster.errors import CurveError
from minicluster.render import curve
from support import SECRET


def certificate() -> str:
    public, secret = curve.random_keypair()
    return f'metadata\ncurve\n    public-key = "{public.decode()}"\n    secret-key = "{secret.decode()}"\n'


@pytest.fixture
def lead() -> Iterator[tuple[str, str]]:
    """A socket such as the lead broker's: its endpoint and its certificate."""
    text = certificate()
    public, secret = curve.keys(text)
    with zmq.Context() as context, context.socket(zmq.ROUTER) as router:
        router.curve_server = True
        router.curve_publickey, router.curve_secretkey = public, secret
        port = router.bind_to_random_port("tcp://127.0.0.1")
        yield f"127.0.0.1:{port}", text


@pytest.fixture
def other() -> Iterator[str]:
    """A server that accepts connections and does not speak CURVE."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            try:
                while True:
                    connection, _ = server.accept()
                    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                    connection.close()
            except OSError:
                return

        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)


def test_the_probe_recognizes_a_lead_by_its_certificate(lead: tuple[str, str]) -> None:
    assert address.probe(lead[0], lead[1]) is Handshake.LEAD
    assert address.probe(lead[0], certificate()) is Handshake.OTHER


def test_the_probe_reports_no_lead_where_none_answers(other: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoints = [other, f"127.0.0.1:{silent.getsockname()[1]}", "127.0.0.1:1", "nowhere.invalid:8050", "[::1]:1"]
        assert [address.probe(endpoint, certificate(), 0.3) for endpoint in endpoints] == [Handshake.NONE] * 5


def test_the_probe_refuses_an_invalid_certificate_without_showing_it() -> None:
    with pytest.raises(CurveError) as caught:
        address.probe("127.0.0.1:1", f'curve\n  secret-key = "{SECRET}"\n')
    assert str(caught.value) == "this is not a CURVE certificate: give the text that `flux keygen FILE` writes"
