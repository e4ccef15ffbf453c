"""Commands, batches and scripts keep the meaning that they had in flux-operator's shell."""

import subprocess

import pytest
from conversion import V1ALPHA1, Case, app, assert_converted, converted

DOLLAR = "has a $ or `: here each task expands it, flux-operator expanded it once, on the lead"
LISTED = "is a list of words now: flux-operator passed {} to the program as words; for a shell, write it as text"
SHELL = "is run by a shell here: flux-operator passed {} to the program as words"
BREAKS = "has double quotes, which break it in flux-operator: here a shell runs it as written"
SINGLE = "has single quotes, which flux-operator passed to the program: here a shell reads them"

# A command, its conversion, and the warnings about it. flux-operator gives the program what
# `command="TEXT"; printf '<%s>' ${command}` prints.
COMMANDS: list[tuple[str, object, list[str]]] = [
    ("echo hello", "echo hello", []),
    ("echo hello\n", "echo hello\n", []),
    ('echo "hello"', 'echo "hello"', []),
    ('echo "hello world"', 'echo "hello world"', [BREAKS]),
    ('sh -c "a;b"', 'sh -c "a;b"', [BREAKS]),
    ("echo 'a b'", "echo 'a b'", [SINGLE]),
    ("sh -c 'a && b'", "sh -c 'a && b'", [SINGLE]),
    ("a && b", ["a", "&&", "b"], [LISTED.format("&&")]),
    ("curl h/?a=1&b=2", ["curl", "h/?a=1&b=2"], [LISTED.replace("now", "now, without patterns").format("&")]),
    ("a | b > c; d", ["a", "|", "b", ">", "c;", "d"], [LISTED.format("| > ;")]),
    ("a #1 ~ x~y a#b", ["a", "#1", "~", "x~y", "a#b"], [LISTED.format("# ~")]),
    ("a {b,c} {d}", ["a", "{b,c}", "{d}"], [LISTED.format("{b,c}")]),
    (r"printf a\n", ["printf", r"a\n"], [LISTED.format("\\")]),
    (r"a \$X \\ \`b", r"a \$X \\ \`b", []),
    (r"a \$X & b", ["a", "$X", "&", "b"], [LISTED.format("&")]),
    ("lmp -v x 2\n  -in in.lj\n", ["lmp", "-v", "x", "2", "-in", "in.lj"], [LISTED.format("its lines")]),
    ("lmp -v x 2 \\\n  -in in.lj\n", "lmp -v x 2 \\\n  -in in.lj\n", []),
    ("echo $HOSTNAME", "echo $HOSTNAME", [DOLLAR]),
    ("echo $(hostname; date) `id`", "echo $(hostname; date) `id`", [DOLLAR]),
    ("echo cost: 5$", "echo cost: 5$", []),
    ("echo ${X} && b", "echo ${X} && b", [DOLLAR, SHELL.format("&&")]),
    ("ls *.txt", "ls *.txt", [DOLLAR.replace("a $ or `", "a pattern")]),
]


@pytest.mark.parametrize(("command", "expected", "warnings"), COMMANDS)
def test_convert_translates_the_command_of_the_runner_and_warns(
    command: str, expected: object, warnings: list[str]
) -> None:
    values, found = converted(app(command=command))
    assert values["containers"][0]["command"] == expected
    assert found == [f"containers[0].command {warning}" for warning in warnings]


@pytest.mark.parametrize("command", ["a $X", "a `b`", r"a \n"])
def test_convert_protects_a_v1alpha1_command_from_shell_expansion(command: str) -> None:
    values, found = converted(app(command=command), version=V1ALPHA1)
    assert found == []
    shell = subprocess.run(
        ["sh", "-c", f"printf '<%s>' {values['containers'][0]['command']}"], capture_output=True, text=True, check=True
    )
    assert shell.stdout == "".join(f"<{word}>" for word in command.split())


BATCH = "containers[0].batch numbers the files of its jobs from 1: flux-operator began at 0 and counted blank lines"
#: A spec, the values that the conversion sets or changes (None: removed), and all warnings
CASES: dict[str, Case] = {
    "a batch is numbered from 1": (
        app(batch=True, command="echo 1\n\necho 2\n"),
        app(batch=True, command="echo 1\n\necho 2\n"),
        [BATCH],
    ),
    "a batch between quotes": (
        app(batch=True, command='echo \\$A "b  c"\n'),
        app(batch=True, command='echo $A "b  c"\n'),
        ["containers[0].command has double quotes, which flux-operator lost: here they are kept", BATCH],
    ),
    "a batch is expanded": (
        app(batch=True, batchRaw=True, command="echo $A\n"),
        app(batch=True, batchRaw=True, command="echo $A\n"),
        [
            "containers[0].command has a $ or `: here the job expands it, flux-operator expanded it when it wrote the "
            "batch"
        ],
    ),
    "a script is unescaped": (
        app(commands={"script": "#!/bin/bash\necho \\$A \\`b\\` \\\\ \\n\n"}),
        app(commands={"script": "#!/bin/bash\necho $A `b` \\ \\n\n"}),
        [],
    ),
    "a script is expanded, and ends at EOF": (
        app(commands={"script": "cat $A\nEOF\n"}),
        app(commands={"script": "cat $A\nEOF\n"}),
        [
            "containers[0].commands.script has an unescaped $ or `: flux-operator expanded it first, here it is "
            "stored as given",
            "containers[0].commands.script has a line EOF: flux-operator's text ended there",
        ],
    ),
    "a script is bash's": (
        app(commands={"script": "#!/bin/sh -e\nx\n"}),
        app(commands={"script": "#!/bin/bash\nx\n"}),
        [
            "containers[0].commands.script begins with #!/bin/bash now: flux-operator ran it with bash instead of "
            "#!/bin/sh -e",
        ],
    ),
    "a script of another language": (
        app(commands={"script": "#!/usr/bin/env python3\nx\n"}),
        app(commands={"script": "#!/usr/bin/env python3\nx\n"}),
        [
            "containers[0].commands.script begins with #!/usr/bin/env python3, which runs it here: flux-operator ran "
            "it with bash",
        ],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_convert_translates_batches_and_scripts(case: str) -> None:
    assert_converted(*CASES[case])
