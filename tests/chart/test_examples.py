"""Each file of values-examples/ has a header with its purpose and its command, and renders to its golden file.

golden/examples/ has the differences from the rendering of the defaults.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml
from goldens import GOLDEN, check, differing
from minicluster.render import postrender, schema
from support import ROOT, SEED, Helm, by_name

FOLDER = ROOT / "values-examples"
NAMES = sorted(path.stem for path in FOLDER.glob("*.yaml"))
#: The command, on one line or two; the release's name and the file's.
COMMAND = re.compile(
    r"^#   helm install (\S+) charts/minicluster(?: \\\n#    )? "
    r"-f values-examples/(\S+)\.yaml --post-renderer minicluster$",
    re.MULTILINE,
)
#: Keys that name an object that must exist before the install.
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


def render(helm: Helm, release: str, values: str) -> str:
    """Return the rendering of values with the seed of the tests."""
    return postrender.render(helm.template(values=values, release=release).encode(), SEED, allow_random=False).decode()


@pytest.fixture(scope="module")
def rendered() -> Callable[[Helm, str], str]:
    """Return the rendering of an example."""
    done: dict[tuple[str, str], str] = {}

    def example(helm: Helm, name: str) -> str:
        if (helm.name, name) not in done:
            done[helm.name, name] = render(helm, release_of(name), text_of(name))
        return done[helm.name, name]

    return example


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


def test_there_are_at_least_30_examples() -> None:
    assert len(NAMES) >= 30


@each_example
def test_the_header_of_an_example_has_its_purpose_and_its_helm_command(name: str) -> None:
    header = header_of(name)
    assert re.match(r"# \w.*[^ ]\n", header)
    assert len(header.partition("\n")[0]) > 30
    commands = COMMAND.findall(header)
    assert commands
    assert {file for _release, file in commands} == {name}
    assert len({release for release, _file in commands}) == 1
    assert header.count("helm install") == len(commands), "a command that is not as the others"


@each_example
def test_the_header_of_an_example_names_the_objects_that_it_needs(name: str) -> None:
    header = header_of(name)
    missing = [found for found in named_by(values_of(name)) if not re.search(rf"[ `/]{found}[`}} \n]", header)]
    assert missing == []


@each_example
def test_the_schema_accepts_each_example(name: str) -> None:
    assert list(schema.problems(values_of(name))) == []


@each_example
def test_an_example_with_another_image_chooses_a_view_for_it(name: str) -> None:
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
def test_an_example_renders_to_its_golden_file(
    rendered: Callable[[Helm, str], str], helm4: Helm, update_golden: bool, name: str
) -> None:
    defaults = render(helm4, release_of(name), "{}")
    check(GOLDEN / "examples" / f"{name}.diff", differing(defaults, rendered(helm4, name)), update_golden)


@each_example
def test_an_example_renders_to_the_same_objects_with_helm_3(
    rendered: Callable[[Helm, str], str], helm3: Helm, helm4: Helm, name: str
) -> None:
    assert by_name(rendered(helm3, name)) == by_name(rendered(helm4, name))


def test_each_golden_file_belongs_to_an_example() -> None:
    assert {path.name for path in (GOLDEN / "examples").iterdir()} == {f"{name}.diff" for name in NAMES}
