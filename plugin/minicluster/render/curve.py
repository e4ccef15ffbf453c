"""The CURVE certificate that the brokers of a cluster share, in CZMQ's file format (ZeroMQ RFC 4)."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from minicluster.errors import CurveError
from minicluster.render.model import MiniClusterModel

#: Makes a key pair, (public, secret), both Z85 text of 40 characters.
Keypair = Callable[[], tuple[bytes, bytes]]

#: The length of a key in Z85
KEY_CHARACTERS = 40

_KEYS = re.compile(r'^\s*(public|secret)-key\s*=\s*"([0-9a-zA-Z.:+=^!/*?&<>()\[\]{}@%$#-]{40})"\s*$', re.MULTILINE)


def random_keypair() -> tuple[bytes, bytes]:
    """Return a key pair from the system's randomness."""
    import zmq  # noqa: PLC0415 - 50 ms, and upgrades need no new key

    return zmq.curve_keypair()


def seeded_keypair(seed: bytes, cluster: MiniClusterModel) -> tuple[bytes, bytes]:
    """Return the key pair that follows from ``seed`` for this cluster: HKDF-SHA256 (RFC 5869), one block."""
    import hmac  # noqa: PLC0415

    import zmq  # noqa: PLC0415
    from zmq.utils import z85  # noqa: PLC0415

    key = hmac.digest(b"minicluster", seed, "sha256")
    info = f"curve {cluster.namespace}/{cluster.name}".encode()
    secret = z85.encode(hmac.digest(key, info + b"\x01", "sha256"))
    return zmq.curve_public(secret), secret


def keys(certificate: str) -> tuple[bytes, bytes]:
    """Return the key pair of a certificate, (public, secret).

    Raises CurveError, which does not show the text, when it is not a certificate.
    """
    parts = {match[1]: match[2].encode() for match in _KEYS.finditer(certificate)}
    if parts.keys() != {"public", "secret"}:
        raise CurveError("this is not a CURVE certificate: give the text that `flux keygen FILE` writes")
    return parts["public"], parts["secret"]


def certificate(cluster: MiniClusterModel, keypair: Keypair) -> str | None:
    """Return the text of the certificate; None when an existing Secret has it.

    The user's certificate comes first, then that of the live release, then one of new keys.
    Raises CurveError when the user's text is not a certificate; the error does not show it.
    """
    given: str = cluster.flux["curveCert"]
    if cluster.flux["curveCertSecret"]:
        return None
    names = {match[1] for match in _KEYS.finditer(given)}
    if given and (names != {"public", "secret"} or not all(c.isprintable() or c in "\n\t" for c in given)):
        raise CurveError("flux.curveCert is not a CURVE certificate: give the text that `flux keygen FILE` writes")
    if given or cluster.certificate:
        return given or cluster.certificate
    return text(cluster.name, *keypair())


def text(name: str, public: bytes, secret: bytes) -> str:
    """Return a key pair as the text of a certificate."""
    assert len(public) == len(secret) == KEY_CHARACTERS, "a key has another length"
    return (
        "#  ZeroMQ CURVE **Secret** Certificate\n"
        "#  DO NOT DISTRIBUTE\n\n"
        f'metadata\n    name = "{name}"\n'
        f'curve\n    public-key = "{public.decode()}"\n    secret-key = "{secret.decode()}"\n'
    )


def secret(metadata: Mapping[str, Any], certificate: str) -> dict[str, Any]:
    """Return a Secret that has the text of a certificate."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "type": "Opaque",
        "stringData": {"curve.cert": certificate},
    }
