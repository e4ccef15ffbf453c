"""What the tasks of a job show, by each way to start one."""

import re
from collections.abc import Callable
from pathlib import Path

#: A line with the CPUs that a task may run on.
SHOW_CPUS = "sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status"
#: A line with the variable, or that it is none.
SHOW_PYTHONPATH = 'echo "${PYTHONPATH-unset}"'
#: A shell's words that print the output of a command of flux in a job, by the way that the job is started.
WAYS = {
    "run": "flux run {options} sh {script}",
    "submit": "flux submit --quiet --watch {options} sh {script}",
    "batch": "flux job attach $(flux batch -n1 --output=kvs --error=kvs --wrap flux run {options} sh {script})",
    "alloc": "flux alloc -n1 flux run {options} sh {script}",
    "nested": "flux run -n1 flux start flux run {options} sh {script}",
}
#: The same for what is no job: the instance's own program.
PROGRAMS = {
    "batch script": "flux job attach $(flux batch -n1 --output=kvs --error=kvs --wrap sh {script})",
    "command of alloc": "flux alloc -n1 sh {script}",
}
SCRIPT = "/tmp/show"


def lines(show: str, ways: dict[str, str], options: str = "") -> str:
    """Return a shell's commands that print `WAY: OUTPUT` for each way; the script is of each node."""
    words = [f"flux exec -r all sh -c 'cat >{SCRIPT}' <<'EOF'\n{show}\nEOF"]
    for name, way in ways.items():
        words.append(f'echo "{name}: $({way.format(options=options, script=SCRIPT)} 2>&1)"')
    return "\n".join(words) + "\n"


def said(output: str, ways: dict[str, str]) -> dict[str, str]:
    """Return what each way printed; the whole output is of these lines."""
    found = dict(line.split(": ", 1) for line in output.splitlines())
    assert list(found) == list(ways), output
    return found


def idset(text: str) -> set[int]:
    """Return the ids of a list such as 0-3,7."""
    spans = [(int(first), int(last or first)) for first, last in re.findall(r"(\d+)(?:-(\d+))?", text)]
    return {number for first, last in spans for number in range(first, last + 1)}


def first_core(cpus: str, read: Callable[[str], str] = lambda path: Path(path).read_text()) -> str:
    """Return the CPUs of the core that the first of these is of."""
    return read(f"/sys/devices/system/cpu/cpu{min(idset(cpus))}/topology/thread_siblings_list").strip()
