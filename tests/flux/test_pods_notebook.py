"""The notebook of values-examples, run as a person does, on a real Kubernetes."""

import re
from pathlib import Path
from typing import Any

import pytest
from real_cluster import IN_PODS
from support import ROOT

from tools import testbed
from tools.releases import STEP_SECONDS

pytestmark = IN_PODS
PATH = ROOT / "values-examples/parameters.ipynb"


def text_of(output: Any) -> str:
    """Return what a person sees of an output: a table where there is one."""
    shown = output.get("data", {})
    return re.sub(r"<[^>]*>", " ", shown.get("text/html") or shown.get("text/plain") or output.get("text", ""))


def test_the_notebook_maps_over_parameters_and_says_why_a_job_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    for package in ("ipykernel", "tqdm", "cloudpickle"):
        pytest.importorskip(package)
    for name, value in testbed.kubernetes().env.items():
        monkeypatch.setenv(name, value)
    book = nbformat.read(PATH, 4)
    with testbed.new_namespace() as namespace:
        values = testbed.values_of({"logging": {"quiet": True}}, {"cores": 4})
        _, parameters, *_ = book.cells
        assert parameters.metadata.tags == ["parameters"]
        parameters.source = f"namespace, values = {namespace!r}, {values!r}"
        place = {"metadata": {"path": str(tmp_path)}}
        nbclient.NotebookClient(book, timeout=STEP_SECONDS, kernel_name="python3", resources=place).execute()
        assert testbed.kubernetes().kubectl("-n", namespace, "get", "jobs,pods", "-o", "name") == ""
    cells = [cell for cell in book.cells if cell.cell_type == "code"]
    shown = ["".join(map(text_of, cell.outputs)) for cell in cells]
    _, created, function, swept, mapped, jobs, picture, failed, ended, _ = shown
    assert re.search(r"MiniCluster +sweep .* state +Running ", created)
    scope: dict[str, Any] = {}
    exec(cells[2].source, scope)  # the function, here
    assert function == ""
    assert "10/10" in swept
    assert swept.endswith(
        str({points: scope["pi"](points) for points in range(1000, 11000, 1000)}).replace(", ", ",\n ")
    )
    assert "20/20" in mapped
    values_of_calls = [float(number) for number in re.findall(r"\d+\.\d+(?=[,\]])", mapped.rpartition("[")[2])]
    assert values_of_calls == [scope["pi"](points) for points in range(100, 2100, 100)]
    # the last four have five calls each
    assert len(re.findall(r" pi +completed ", jobs)) == 14
    page = (tmp_path / "run.html").read_text()
    assert ("run.html with 14 jobs" in picture, "</html>" in page, "pi" in page) == (True, True, True)
    assert re.search(r'"""\nTraceback .*, in pi\nValueError: points=0: give at least one\n"""', failed, re.DOTALL)
    assert re.search(r" exit code +1 .* nodes +sweep-[01] ", failed)
    assert re.search(r"job \S+ ran into its time limit", ended)
