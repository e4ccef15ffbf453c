"""Quantities have the same values as in Kubernetes."""

from decimal import Decimal

import pytest
from minicluster.errors import SpecError
from minicluster.kube.names import is_quantity, to_number, unmeant
from minicluster.render import formats


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (4, "4"),
        (2.5, "2.5"),
        (1e22, "1e22"),
        ("4", "4"),
        ("+4", "4"),
        ("-4", "-4"),
        ("4.", "4"),
        (".5", "0.5"),
        ("0.5", "0.5"),
        ("500m", "0.5"),
        ("1500m", "1.5"),
        ("3u", "0.000003"),
        ("7n", "0.000000007"),
        ("1k", "1000"),
        ("1Ki", "1024"),
        ("2M", "2000000"),
        ("1Mi", "1048576"),
        ("1.5Gi", "1610612736"),
        ("2E", "2e18"),
        ("1Ei", "1152921504606846976"),
        ("1e3", "1000"),
        ("1E3", "1000"),
        ("1e-3", "0.001"),
    ],
)
def test_a_kubernetes_quantity_is_read_as_a_number(value: object, expected: str) -> None:
    assert is_quantity(value)
    assert to_number(value) == Decimal(expected)


NONE = (
    *("", "m", "four", "4 cores", " 4", "4\n", "1mm", "0x10", "m4", "--1", "-+4", "4ikM", "1K", "1mi", "1e", "1e9999"),
    *("nan", "inf", "-inf", "1_0", "\u0661", ".", "1.2.3", True, None, [4], {"cpu": 4}),
)


@pytest.mark.parametrize("value", NONE)
def test_a_text_that_is_not_a_quantity_is_refused(value: object) -> None:
    assert not is_quantity(value)
    with pytest.raises(SpecError) as caught:
        to_number(value)
    assert str(caught.value) == " ".join(f"{str(value)!r} is not a quantity: give e.g. 4, 500m or 8Gi".split())


SUFFIXES = ("", *"numkKMGTPE", *(f"{letter}i" for letter in "mkKMGTPE"), "Kb", "e-3", "E+3")


@pytest.mark.parametrize("text", [*(f"1{suffix}" for suffix in SUFFIXES), "+4", ".5", "4.", ".", "K"])
def test_the_schema_format_accepts_the_same_quantities(text: str) -> None:
    assert formats.has("quantity", text) == is_quantity(text)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("512", "512 bytes: did you mean 512Mi?"),
        ("100k", "100000 bytes: did you mean 100Mi?"),
        ("1.5", "1.5 bytes: did you mean 1.5Gi?"),
        ("1e3", "1000 bytes: did you mean 1Mi?"),
        ("1", "1 byte: did you mean 1Gi?"),
        ("0", ""),
        ("1Mi", ""),
        (1073741824, ""),
    ],
)
def test_a_few_bytes_are_not_meant(value: object, why: str) -> None:
    assert (unmeant("memory", value), unmeant("hugepages-2Mi", value)) == (why, why)
    assert not unmeant("nvidia.com/gpu", value)
