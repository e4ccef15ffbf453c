"""How the plugin reads the parameters of an Argo CD Application."""

import json
from pathlib import Path
from typing import Any

import pytest
from minicluster.commands import argocd
from minicluster.errors import SpecError
from minicluster.release import helm

APPLICATION = {"ARGOCD_APP_NAME": "app", "ARGOCD_APP_NAMESPACE": "team", "ARGOCD_APP_SOURCE_PATH": "team/app"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a repository and return the Application's folder in it."""
    path = tmp_path / "repository" / "team" / "app"
    path.mkdir(parents=True)
    for file in (
        path / argocd.VALUES_NAME,
        path.parent / "team.yaml",
        path.parents[1] / "all.yaml",
        tmp_path / "secret",
    ):
        file.write_text("size: 1\n")
    return path


@pytest.fixture
def release(folder: Path) -> Any:
    """Return the release that parameters make of an Application."""

    def of(*parameters: object, **environment: str) -> helm.OfflineRelease:
        return argocd.release(APPLICATION | {"ARGOCD_APP_PARAMETERS": json.dumps(parameters)} | environment, folder)

    return of


def test_an_application_without_parameters_has_the_default_release(release: Any, folder: Path) -> None:
    wanted = helm.OfflineRelease("app", "team", [f"--values={folder / argocd.VALUES_NAME}"])
    assert release() == wanted
    for nothing in ("", "null", "[]"):
        assert release(ARGOCD_APP_PARAMETERS=nothing) == wanted


def test_an_application_names_another_chart_of_the_repository(release: Any, folder: Path) -> None:
    chart = folder.parents[1] / "charts" / "lammps"
    chart.mkdir(parents=True)
    with pytest.raises(
        SpecError, match=r"the file \.\./\.\./charts/lammps/Chart.yaml is missing: add it, or name another in"
    ):
        release({"name": "chart", "string": "../../charts/lammps"})
    (chart / "Chart.yaml").touch()
    made = release({"name": "chart", "string": "../../charts/lammps"})
    assert made == helm.OfflineRelease("app", "team", [], str(chart))
    made = release(
        {"name": "chart", "string": "../../charts/lammps"}, {"name": "values-files", "array": ["../team.yaml"]}
    )
    assert made.values == [f"--values={folder.parent / 'team.yaml'}"]
    with pytest.raises(SpecError, match=r"the file \.\./\.\./\.\./Chart.yaml is not in the repository"):
        release({"name": "chart", "string": "../../.."})


def test_an_application_passes_its_parameters_to_the_release(release: Any, folder: Path) -> None:
    made = release(
        {"name": "name", "string": "other"},
        {"name": "values-files", "array": ["../../all.yaml", "../team.yaml"]},
        {"name": "set", "map": {"size": "4", "b": "true", "c": "a,b=c", "d": "{x: 1}", "e": "", "f": "2001-01-01"}},
        {"name": "kube-version", "string": "1.36"},
    )
    assert made == helm.OfflineRelease(
        "other",
        "team",
        [
            f"--values={folder.parents[1] / 'all.yaml'}",
            f"--values={folder.parent / 'team.yaml'}",
            "--set-json=b=true",
            '--set-json=c="a,b=c"',
            '--set-json=d={"x": 1}',
            "--set-json=e=null",
            '--set-json=f="2001-01-01"',
            "--set-json=size=4",
        ],
        kube_version="1.36",
    )


@pytest.mark.parametrize(
    ("parameter", "message"),
    [
        (
            {"name": "values-files", "array": ["../../../secret"]},
            "the values file ../../../secret is not in the repository: give a path in it",
        ),
        (
            {"name": "values-files", "array": ["/etc/passwd"]},
            "the values file /etc/passwd is not in the repository: give a path in it",
        ),
        (
            {"name": "values-files", "array": ["https://a/b"]},
            "the values file https://a/b is missing: add it, or name another in the parameter values-files",
        ),
        (
            {"name": "values-files", "array": [".."]},
            "the values file .. is missing: add it, or name another in the parameter values-files",
        ),
        (
            {"name": "values", "array": ["a"]},
            "the parameter 'values' is unknown: there are name, chart, values-files, set, kube-version",
        ),
        ({"name": "set", "string": "a"}, "the parameter set has no map: give it as `map:`"),
        ({"name": "set", "map": {"a": "{"}}, "the parameter set has '{' for a, which is not YAML: put it in quotes"),
    ],
)
def test_wrong_parameters_of_an_application_are_refused(release: Any, parameter: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError) as caught:
        release(parameter)
    assert str(caught.value) == message


def test_a_values_file_that_links_out_of_the_repository_is_refused(release: Any, folder: Path) -> None:
    (folder / "link.yaml").symlink_to(folder.parents[2] / "secret")
    with pytest.raises(SpecError, match=r"the values file link\.yaml is not in the repository"):
        release({"name": "values-files", "array": ["link.yaml"]})


def test_an_application_at_the_root_of_its_repository_reads_values_inside_only(release: Any, folder: Path) -> None:
    with pytest.raises(SpecError, match="is not in the repository"):
        release({"name": "values-files", "array": ["../team.yaml"]}, ARGOCD_APP_SOURCE_PATH=".")
    assert release(ARGOCD_APP_SOURCE_PATH=".").values == [f"--values={folder / argocd.VALUES_NAME}"]


def test_the_argo_cd_command_outside_argo_cd_is_refused(release: Any) -> None:
    with pytest.raises(SpecError) as caught:
        release(ARGOCD_APP_NAMESPACE="")
    assert str(caught.value) == (
        "ARGOCD_APP_NAMESPACE is not set: Argo CD's plugin sets it; elsewhere use `minicluster template`"
    )
