"""What comes out of chart and post-renderer for the values files in cases/, compared with golden/.

`pytest tests/chart --update-golden` writes golden/ anew: read the difference before you commit it.
"""

import re
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from support import PACKAGE, Helm, by_name

HERE = Path(__file__).parent
CASES = sorted(path.stem for path in (HERE / "cases").glob("*.yaml"))


def scripts() -> dict[str, str]:
    files = [path for path in (PACKAGE / "pod").iterdir() if path.is_file()]
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(files)}


def template(helm: Helm, case: str) -> str:
    """Return `helm template` of a case; a line `# helm: …` in it has more options."""
    path = HERE / "cases" / f"{case}.yaml"
    options = re.search(r"^# helm: (.*)$", path.read_text(), re.MULTILINE)
    return helm.template(*shlex.split(options[1] if options else ""), values=path.read_text())


def render(stream: str, seed_file: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "minicluster", "render", "--curve-seed-file", str(seed_file)],
        input=stream.encode(),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def without_scripts(text: str) -> str:
    """Replace the text of each static script, which is in its own file, by a short note."""
    for name, script in scripts().items():
        block = f"  {name}: |\n" + textwrap.indent(script, "    ")
        text = text.replace(block, f"  {name}: (the file)\n")
    return text


@pytest.mark.parametrize("case", CASES)
def test_golden(helm4: Helm, seed_file: Path, update_golden: bool, case: str) -> None:
    text = without_scripts(render(template(helm4, case), seed_file))
    assert text.count("(the file)\n") == len(scripts()), "a script is not in the ConfigMap as it is"
    golden = HERE / "golden" / f"{case}.yaml"
    if update_golden:
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8"), f"{golden} differs: see --update-golden"


@pytest.mark.parametrize("case", CASES)
def test_helm_3_gives_the_same_objects(helm3: Helm, helm4: Helm, seed_file: Path, case: str) -> None:
    three, four = (by_name(render(template(helm, case), seed_file)) for helm in (helm3, helm4))
    assert three == four


def test_each_golden_file_has_its_case() -> None:
    assert sorted(path.stem for path in (HERE / "golden").glob("*.yaml")) == CASES


def test_the_scripts_in_the_config_map_are_the_files(helm4: Helm, seed_file: Path) -> None:
    data = by_name(render(template(helm4, "defaults"), seed_file))["ConfigMap", "flux-sample-config"]["data"]
    assert {name: data[name] for name in scripts()} == scripts()
