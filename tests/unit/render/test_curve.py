import re
from collections.abc import Callable

import pytest
import zmq
from hypothesis import given
from hypothesis import strategies as st
from minicluster.errors import CurveError
from minicluster.render import curve
from minicluster.render.model import MiniClusterModel
from support import CERTIFICATE, SECRET, SEED

Make = Callable[..., MiniClusterModel]
NAMES = st.from_regex(r"[a-z]([-a-z0-9]{0,20}[a-z0-9])?", fullmatch=True)


def no_keys() -> tuple[bytes, bytes]:
    pytest.fail("a new pair of keys was made")


def keys(certificate: str) -> dict[str, str]:
    """Read a certificate as CZMQ's zconfig does: name = "value", indented under `curve`."""
    lines = [line for line in certificate.splitlines() if line.strip() and not line.startswith("#")]
    assert lines.index("metadata") < lines.index("curve")
    curve_lines = lines[lines.index("curve") + 1 :]
    found = dict(re.fullmatch(r'    ([\w-]+) = "([^"]*)"', line).groups() for line in curve_lines)  # type: ignore[union-attr]
    assert set(found) == {"public-key", "secret-key"}
    return found


def test_seeded_keys_are_the_same_each_time(cluster_of: Make) -> None:
    assert curve.seeded_keypair(SEED, cluster_of()) == curve.seeded_keypair(SEED, cluster_of({"size": 4}))


def test_the_seed_of_the_tests_gives_these_keys(cluster_of: Make) -> None:
    # HKDF-SHA256 (RFC 5869) of the seed, salt `minicluster`, info `curve ns/flux-sample`: never to change
    public, secret = curve.seeded_keypair(SEED, cluster_of())
    assert (public, secret) == (
        b"oV^lox(EQK{$0[q.CN^^3/mf[wUV{X+io]v@wkfM",
        b"&@W:9[QJFYG##ss%4>lV1ID):r0O(CGF-nzxBSf0",
    )


@given(seed=st.binary(min_size=16, max_size=64), name=NAMES, namespace=NAMES)
def test_the_public_key_belongs_to_the_secret_one(cluster_of: Make, seed: bytes, name: str, namespace: str) -> None:
    cluster = cluster_of(name=name, namespace=namespace)
    certificate = curve.certificate(cluster, lambda: curve.seeded_keypair(seed, cluster))
    assert certificate is not None
    pair = keys(certificate)
    assert zmq.curve_public(pair["secret-key"].encode()).decode() == pair["public-key"]


def test_each_seed_name_and_namespace_has_its_own_keys(cluster_of: Make) -> None:
    pairs = {
        curve.seeded_keypair(seed, cluster_of(name=name, namespace=namespace))
        for seed in (SEED, SEED + b"x")
        for name in ("a", "b")
        for namespace in ("a", "b")
    }
    assert len(pairs) == 8


def test_random_keys_are_a_pair_and_differ() -> None:
    (public, secret), other = curve.random_keypair(), curve.random_keypair()
    assert zmq.curve_public(secret) == public
    assert other != (public, secret)


def test_the_certificate_of_the_user_replaces_the_live_one_unchanged(cluster_of: Make) -> None:
    cluster = cluster_of({"flux": {"curveCert": CERTIFICATE}}, certificate="the live one")
    assert curve.certificate(cluster, no_keys) == CERTIFICATE


def test_the_live_certificate_is_kept(cluster_of: Make) -> None:
    assert curve.certificate(cluster_of(certificate=CERTIFICATE), no_keys) == CERTIFICATE


def test_no_certificate_is_made_when_the_user_names_a_secret(cluster_of: Make) -> None:
    assert curve.certificate(cluster_of({"flux": {"curveCertSecret": "mine"}}), no_keys) is None


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(SECRET, id="a key"),
        pytest.param("x", id="a word"),
        pytest.param(CERTIFICATE.replace("public-key", "publik-key"), id="no public key"),
        pytest.param(CERTIFICATE.replace("secret-key", "public-key"), id="no secret key"),
        pytest.param(CERTIFICATE.replace(SECRET, SECRET[1:]), id="a short key"),
        pytest.param(CERTIFICATE.replace(SECRET, SECRET + "x"), id="a long key"),
        pytest.param(CERTIFICATE.replace(SECRET, SECRET[1:] + "é"), id="a key with é"),
        pytest.param(CERTIFICATE.replace('"', ""), id="no quotes"),
        pytest.param(CERTIFICATE + "\x85", id="a control character"),
    ],
)
def test_an_invalid_certificate_is_refused_and_not_shown(cluster_of: Make, text: str) -> None:
    with pytest.raises(CurveError) as caught:
        curve.certificate(cluster_of({"flux": {"curveCert": text}}), no_keys)
    assert str(caught.value) == (
        "flux.curveCert is not a CURVE certificate: give the text that `flux keygen FILE` writes"
    )
