"""Snippets that wrote Flux's resources by `flux R encode`."""

import subprocess
from typing import Any

import pytest
from conversion import Case, app, assert_converted, converted

WRITES = "flux R encode --hosts=${hosts} --cores=0-15 --gpu=0-7 > ${viewroot}/etc/flux/system/R"
NAMES = "hosts, viewroot, etc/flux/system/R, which only flux-operator's pods have"
BOTH = "containers[0].cores is 16 now, containers[0].gpus is 8 now"


def wrote(made: str, names: str = NAMES, key: str = "pre") -> str:
    return f"containers[0].commands.{key} wrote R by `flux R encode`: {made}. Its lines are dropped; they use {names}"


def encode(options: str) -> str:
    return WRITES.replace("--cores=0-15 --gpu=0-7", options)


#: A spec, the values that the conversion sets or changes (None: removed), and all warnings
CASES: dict[str, Case] = {
    "with other lines": (
        app(
            command="x",
            commands={"pre": f"echo a\n{WRITES}\ncat ${{viewroot}}/etc/flux/system/R || true\nexport B=1\n"},
        ),
        app(command="x", commands={"pre": "echo a\nexport B=1\n"}, cores=16, gpus=8),
        [wrote(BOTH)],
    ),
    "alone": (
        app(command="x", commands={"brokerPre": f"  {WRITES}\n"}),
        app(command="x", commands={}, cores=16, gpus=8),
        [wrote(BOTH, key="brokerPre")],
    ),
    "short options, the last line counts": (
        app(command="x", cores=2, commands={"pre": f"{WRITES}\n{encode('-c 0,2-3 -g 0')}"}),
        app(command="x", commands={}, cores=3, gpus=1),
        [wrote("containers[0].cores is 3 now, containers[0].gpus is 1 now")],
    ),
    "numbers of a shell": (
        app(command="x", commands={"pre": f"procs=$(nproc)\n{encode('--cores=0-${procs} --gpus=0-7')}\n"}),
        app(command="x", commands={"pre": "procs=$(nproc)\n"}, gpus=8),
        [wrote("containers[0].gpus is 8 now, set containers[0].cores")],
    ),
    "local": (
        app(command="x", commands={"pre": "flux R encode --local > /etc/flux/system/R"}),
        app(command="x", commands={}),
        [
            wrote(
                "Flux counts the cores of its Kubernetes node here too",
                "etc/flux/system/R, which only flux-operator's pods have",
            )
        ],
    ),
    "in an if": (
        app(command="x", commands={"pre": f"if a; then\n  {WRITES}\nfi\n"}),
        app(command="x", commands={"pre": "if a; then\ntrue\nfi\n"}, cores=16, gpus=8),
        [wrote(BOTH)],
    ),
    "beside another command": (
        app(command="x", commands={"pre": f"a && {WRITES}"}),
        {},
        [f"containers[0].commands.pre uses {NAMES}"],
    ),
    "somewhere else": (app(command="x", commands={"pre": "flux R encode -r 0 > /tmp/R\ncat /tmp/R"}), {}, []),
}


@pytest.mark.parametrize("case", CASES)
def test_convert_takes_the_numbers_of_flux_r_encode(case: str) -> None:
    assert_converted(*CASES[case])


@pytest.mark.parametrize(
    "around", ["if true; then\n{}\nfi", "true && \\\n{}", "true &&\n{}", "for a in b\ndo\n{}\ndone"]
)
def test_what_is_left_of_a_snippet_is_a_script(around: str) -> None:
    values: dict[str, Any]
    values, _ = converted(app(command="x", commands={"pre": around.format(WRITES)}))
    subprocess.run(["bash", "-n", "-c", values["containers"][0]["commands"]["pre"]], check=True)
