"""Facts that stand in two languages, or in the package and in the pods, are the same in both (CONTRIBUTING.md)."""

import re

import kube
import pytest
import state
import suspend
from hypothesis import given
from hypothesis import strategies as st
from minicluster import flux
from minicluster.cluster.pods import REPLACED_CODES, SUSPENDED
from minicluster.kube.names import CONFIG_SUFFIX, CURVE_SUFFIX
from minicluster.render.constants import IMMUTABLE, KUEUE_ELASTIC, KUEUE_PRIORITY, KUEUE_QUEUE
from support import CHART, PACKAGE

TEMPLATES = "\n".join(path.read_text() for path in sorted((CHART / "templates").rglob("*.tpl")))
SHELL = {path.name: path.read_text() for path in (PACKAGE / "pod").rglob("*.sh")}


@pytest.mark.parametrize(
    "key", [KUEUE_QUEUE, KUEUE_PRIORITY, KUEUE_ELASTIC, IMMUTABLE, f'"%s{CONFIG_SUFFIX}"', f'"%s{CURVE_SUFFIX}"']
)
def test_the_chart_has_the_name_that_the_package_reads(key: str) -> None:
    assert key in TEMPLATES


def test_the_agent_has_the_names_that_the_package_reads() -> None:
    ours = (kube.QUEUE, kube.ELASTIC, suspend.SUSPENDED)
    assert ours == (KUEUE_QUEUE, KUEUE_ELASTIC, SUSPENDED)


def test_the_codes_of_replaced_pods_are_those_of_chart_and_scripts() -> None:
    codes = ", ".join(map(str, REPLACED_CODES))
    assert f"values: [{codes}]" in TEMPLATES
    assert f"  {codes.replace(', ', ' | ')})" in SHELL["process.sh"]
    assert re.findall(r"^RETRY_CODE=(\d+)$", SHELL["entrypoint.sh"], re.MULTILINE) == [str(REPLACED_CODES[0])]


@given(st.lists(st.integers(0, 99)))
def test_the_pods_write_and_read_an_idset_as_the_package_does(numbers: list[int]) -> None:
    text = state.to_idset(numbers)
    assert text == flux.to_idset(numbers)
    assert state.parse_idset(f"[{text}]") == flux.parse_idset(text)
