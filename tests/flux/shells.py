"""What the tasks of a job print, for each way to start a job."""

from collections.abc import Callable
from pathlib import Path

from minicluster.flux import parse_idset

#: Prints the CPUs that a task may run on.
SHOW_CPUS = "sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status"
#: Prints the variable, or `unset`.
SHOW_PYTHONPATH = 'echo "${PYTHONPATH-unset}"'
#: Shell commands that run a script in a job and print its output, by the way that the job is started.
WAYS = {
    "run": "flux run {options} sh {script}",
    "submit": "flux submit --quiet --watch {options} sh {script}",
    "batch": "flux job attach $(flux batch -n1 --output=kvs --error=kvs --wrap flux run {options} sh {script})",
    "alloc": "flux alloc -n1 flux run {options} sh {script}",
    "nested": "flux run -n1 flux start flux run {options} sh {script}",
}
#: The same for programs that are not jobs but the initial program of an instance.
PROGRAMS = {
    "batch script": "flux job attach $(flux batch -n1 --output=kvs --error=kvs --wrap sh {script})",
    "command of alloc": "flux alloc -n1 sh {script}",
}
SCRIPT = "/tmp/show"


def lines(show: str, ways: dict[str, str], options: str = "") -> str:
    """Return shell commands that print `WAY: OUTPUT` for each way; they put the script on each node first.

    Of the output they print the last line: an older Flux has warnings before it.
    """
    words = [f"flux exec -r all sh -c 'cat >{SCRIPT}' <<'EOF'\n{show}\nEOF"]
    for name, way in ways.items():
        words.append(
            f'echo "{name}: $({way.format(options=options, script=SCRIPT)} 2>&1 | grep -v "err\\[" | tail -n 1)"'
        )
    return "\n".join(words) + "\n"


def said(output: str, ways: dict[str, str]) -> dict[str, str]:
    """Return what each way printed. The output must have these lines and no others."""
    found = dict(line.split(": ", 1) for line in output.splitlines())
    assert list(found) == list(ways), output
    return found


def first_core(cpus: str, read: Callable[[str], str] = lambda path: Path(path).read_text()) -> str:
    """Return the CPUs of the core that has the first of these CPUs."""
    return read(f"/sys/devices/system/cpu/cpu{min(parse_idset(cpus))}/topology/thread_siblings_list").strip()
