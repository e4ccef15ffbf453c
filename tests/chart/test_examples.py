"""Each file of values-examples/ says what it shows and how it is installed, and renders to what golden/examples/ has.

`pytest tests/chart/test_examples.py --update-golden` writes golden/examples/ anew.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from minicluster.render import postrender, schema
from support import ROOT, SEED, Helm, by_name
from test_golden import scripts, without_scripts

FOLDER = ROOT / "values-examples"
GOLDEN = Path(__file__).parent / "golden" / "examples"
NAMES = sorted(path.stem for path in FOLDER.glob("*.yaml"))
#: The command, on one line or two; the release's name and the file's.
COMMAND = re.compile(
    r"^#   helm install (\S+) charts/minicluster(?: \\\n#    )? "
    r"-f values-examples/(\S+)\.yaml --post-renderer minicluster$",
    re.MULTILINE,
)
#: Keys that name an object that must be there first.
REFERENCES = {
    "claimName",
    "secretName",
    "configMapName",
    "curveCertSecret",
    "imagePullSecret",
    "mungeSecret",
    "serviceAccountName",
}

each_example = pytest.mark.parametrize("name", NAMES)


def text_of(name: str) -> str:
    return (FOLDER / f"{name}.yaml").read_text(encoding="utf-8")


def values_of(name: str) -> dict[str, Any]:
    values: dict[str, Any] = yaml.safe_load(text_of(name))
    return values


def header_of(name: str) -> str:
    """Return the comment that a file begins with."""
    match = re.match(r"(#.*\n)+", text_of(name))
    assert match, "the file begins with a comment"
    return match[0]


def release_of(name: str) -> str:
    match = COMMAND.search(header_of(name))
    assert match, "the header has the command"
    return match[1]


@pytest.fixture(scope="module")
def rendered() -> Callable[[Helm, str], str]:
    """Return what an example renders to with a Helm and the seed of the tests."""
    done: dict[tuple[str, str], str] = {}

    def render(helm: Helm, name: str) -> str:
        if (helm.name, name) not in done:
            stream = helm.template(values=text_of(name), release=release_of(name))
            done[helm.name, name] = postrender.render(stream.encode(), SEED, allow_random=False).decode()
        return done[helm.name, name]

    return render


def named_by(values: Any) -> Iterator[str]:
    """Yield the names of the objects that values refer to."""
    if isinstance(values, dict):
        yield from (value for key, value in values.items() if key in REFERENCES)
        yield from (secret["name"] for secret in (values.get("secrets") or {}).values())
        for value in values.values():
            yield from named_by(value)
    elif isinstance(values, list):
        for value in values:
            yield from named_by(value)


def test_there_are_enough() -> None:
    assert len(NAMES) >= 30


@each_example
def test_the_header_says_what_it_shows_and_the_command(name: str) -> None:
    header = header_of(name)
    assert re.match(r"# \w.*[^ ]\n", header)
    assert len(header.partition("\n")[0]) > 30
    commands = COMMAND.findall(header)
    assert commands
    assert {file for _release, file in commands} == {name}
    assert len({release for release, _file in commands}) == 1
    assert header.count("helm install") == len(commands), "a command that is not as the others"


@each_example
def test_the_header_says_what_must_be_there_first(name: str) -> None:
    header = header_of(name)
    missing = [found for found in named_by(values_of(name)) if not re.search(rf"[ `/]{found}[`}} \n]", header)]
    assert missing == []


@each_example
def test_the_schema_accepts_it(name: str) -> None:
    assert list(schema.problems(values_of(name))) == []


@each_example
def test_another_image_has_a_view_that_fits_it(name: str) -> None:
    values = values_of(name)
    containers = values["containers"]
    runner = containers[0] if len(containers) == 1 else next(c for c in containers if c.get("runFlux"))
    flux = values.get("flux", {})
    container = flux.get("container", {})
    if runner["image"] == "ubuntu:noble":
        assert not container.get("image")
    else:
        assert container.get("image") or container.get("disable") or flux.get("arch")


@each_example
def test_golden(rendered: Callable[[Helm, str], str], helm4: Helm, update_golden: bool, name: str) -> None:
    text = without_scripts(rendered(helm4, name))
    assert text.count("(the file)\n") == len(scripts()), "a script is not in the ConfigMap as it is"
    golden = GOLDEN / f"{name}.yaml"
    if update_golden:
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8"), f"{golden} differs: see --update-golden"


@each_example
def test_helm_3_gives_the_same_objects(
    rendered: Callable[[Helm, str], str], helm3: Helm, helm4: Helm, name: str
) -> None:
    assert by_name(rendered(helm3, name)) == by_name(rendered(helm4, name))


def test_each_golden_file_has_its_example() -> None:
    assert sorted(path.stem for path in GOLDEN.glob("*.yaml")) == NAMES
