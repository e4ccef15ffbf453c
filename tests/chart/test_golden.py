"""The output of chart and post-renderer for the values files in cases/ is that of the files in golden/.

The base cases have whole renderings, the others the differences from that of the defaults.
"""

import functools
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from goldens import GOLDEN, check, differing, without_programs
from minicluster.pod import shipped
from minicluster.render import postrender
from support import SEED, Helm, by_name

CASES = Path(__file__).parent / "cases"
NAMES = sorted(path.stem for path in CASES.glob("*.yaml"))
#: The cases whose renderings are whole.
BASES = {"defaults", "every-field"}


def template(helm: Helm, case: str) -> str:
    """Return `helm template` of a case; a line `# helm: …` in it has more options."""
    path = CASES / f"{case}.yaml"
    options = re.search(r"^# helm: (.*)$", path.read_text(), re.MULTILINE)
    return helm.template(*shlex.split(options[1] if options else ""), values=path.read_text())


def render(stream: str) -> str:
    return postrender.render(stream.encode(), SEED, allow_random=False).decode()


@pytest.fixture(scope="module")
def rendered(helm4: Helm) -> Callable[[str], str]:
    """Return what a case renders to with Helm 4."""
    return functools.cache(lambda case: render(template(helm4, case)))


@pytest.mark.parametrize("case", NAMES)
def test_a_case_renders_to_its_golden_file(rendered: Callable[[str], str], update_golden: bool, case: str) -> None:
    if case in BASES:
        check(GOLDEN / f"{case}.yaml", without_programs(rendered(case)), update_golden)
    else:
        check(GOLDEN / f"{case}.diff", differing(rendered("defaults"), rendered(case)), update_golden)


@pytest.mark.parametrize("case", NAMES)
def test_a_case_renders_to_the_same_objects_with_helm_3(rendered: Callable[[str], str], helm3: Helm, case: str) -> None:
    assert by_name(render(template(helm3, case))) == by_name(rendered(case))


def test_each_golden_file_belongs_to_a_case() -> None:
    expected = {f"{name}.yaml" if name in BASES else f"{name}.diff" for name in NAMES}
    assert {path.name for path in GOLDEN.iterdir() if path.is_file()} == expected


def test_the_configmaps_have_the_script_files_unchanged(rendered: Callable[[str], str]) -> None:
    objects = by_name(rendered("defaults"))
    suffixes = ("programs", "programs-slurm", "config")
    shared, slurm, own = (objects["ConfigMap", f"flux-sample-{suffix}"]["data"] for suffix in suffixes)
    assert not shared.keys() & own.keys() | slurm.keys() & own.keys()
    assert {**shared, **slurm, "quorum.sh": own["quorum.sh"]} == shipped()
