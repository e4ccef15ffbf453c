"""Each file of values-examples/ has a header with its purpose and its command, and renders to its golden file.

golden/examples/ has in what its rendering differs from that of its common fields alone, where it sets more than those.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml
from batch import Batch, case
from goldens import GOLDEN, check, differing
from minicluster.render import postrender, schema, upgrade
from support import ROOT, SEED, Helm, load_all

# one worker renders all
pytestmark = pytest.mark.xdist_group("examples")
Render = Callable[[str, dict[str, Any]], str]
FOLDER = ROOT / "values-examples"
NAMES = sorted(path.stem for path in FOLDER.glob("*.yaml"))
#: The command, on one line or two; the release's name and the file's.
COMMAND = re.compile(
    r"^#   helm install (\S+) charts/minicluster(?: \\\n#    )? "
    r"-f values-examples/(\S+)\.yaml --post-renderer minicluster$",
    re.MULTILINE,
)
#: A key of the certificate
KEY = re.compile(r'-key = ".{40}"')
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

#: Fields that say nothing new: every-field.yaml, hello.diff and elastic.diff have what becomes of them.
COMMON = {
    *("size", "maxSize", "minSize", "tasks", "interactive", "logging.quiet"),
    *("containers.name", "containers.image", "containers.command", "containers.workingDir"),
}

each_example = pytest.mark.parametrize("name", NAMES)


def text_of(name: str) -> str:
    return (FOLDER / f"{name}.yaml").read_text(encoding="utf-8")


def values_of(name: str) -> dict[str, Any]:
    values: dict[str, Any] = yaml.load(text_of(name), yaml.CSafeLoader)
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


def fields_of(values: dict[str, Any]) -> set[str]:
    """Return the paths of the fields that values set; those of all containers are one."""
    return {re.sub(r"\[\d+\]", "", path) for path, _ in upgrade.flat(values)}


def runner_of(values: dict[str, Any]) -> dict[str, Any]:
    """Return the container that runs Flux."""
    containers: list[dict[str, Any]] = values["containers"]
    return containers[0] if len(containers) == 1 else next(one for one in containers if one.get("runFlux"))


def common(values: dict[str, Any], path: str = "") -> dict[str, Any]:
    """Return the common fields of values; of several containers, those of the runner."""
    fields = {}
    for key, value in values.items():
        if f"{path}{key}" in COMMON:
            fields[key] = value
        elif key == "containers":
            fields[key] = [common(runner_of(values), "containers.")]
        elif isinstance(value, dict) and (below := common(value, f"{path}{key}.")):
            fields[key] = below
    return fields


SPECIAL = [name for name in NAMES if not fields_of(values_of(name)) <= COMMON]


@pytest.fixture(scope="module")
def render(helm4: Helm, tmp_path_factory: pytest.TempPathFactory) -> Render:
    """Return what the values of a release render to, without the keys: they follow from the seed and its name."""
    known = [
        case(values, release=release_of(name))
        for name in NAMES
        for values in (values_of(name), common(values_of(name)))
    ]
    batch = Batch(helm4, tmp_path_factory.mktemp("batch"), known)

    def rendered(release: str, values: dict[str, Any]) -> str:
        stream = batch.stream(case(values, release=release)).encode()
        return KEY.sub("-key = (a key)", postrender.render(stream, SEED, allow_random=False).decode())

    return rendered


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
def test_an_editor_finds_the_schema_of_an_example(name: str) -> None:
    line = "# yaml-language-server: $schema=../charts/minicluster/values.schema.json\n"
    assert header_of(name).endswith(line)
    assert (FOLDER / line.strip().partition("=")[2]).is_file()


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
    runner = runner_of(values)
    flux = values.get("flux", {})
    container = flux.get("container", {})
    if runner["image"] == "ubuntu:noble":
        assert not container.get("image")
    else:
        assert container.get("image") or container.get("disable") or flux.get("arch")


@pytest.mark.parametrize("name", SPECIAL)
def test_an_example_renders_to_its_golden_file(render: Render, update_golden: bool, name: str) -> None:
    base, other = (render(release_of(name), values) for values in (common(values_of(name)), values_of(name)))
    check(GOLDEN / "examples" / f"{name}.diff", differing(base, other), update_golden)


@pytest.mark.parametrize("name", sorted(set(NAMES) - set(SPECIAL)))
def test_an_example_with_common_fields_alone_renders(render: Render, name: str) -> None:
    job = next(one for one in load_all(render(release_of(name), values_of(name))) if one["kind"] == "Job")
    assert job["spec"]["parallelism"] == values_of(name).get("size", 1)


def test_each_golden_file_belongs_to_an_example() -> None:
    assert {path.name for path in (GOLDEN / "examples").iterdir()} == {f"{name}.diff" for name in SPECIAL}
