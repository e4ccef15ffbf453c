"""What a run cost: CPU seconds by tier, and the costliest files and tests. Minutes say more of the machine."""

import os
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import pytest

COSTLIEST_FILES, COSTLIEST_TESTS = 40, 10
#: What is no single test's: it begins before the first test of a worker, or ends with its last one
COLLECTION, REST = "collection", "end of the last tests"
BESIDE = "beside the tests: "
SHARED = (COLLECTION, REST, BESIDE)
#: The name of a report's property
CPU_SECONDS = "CPU seconds"
TICK = os.sysconf("SC_CLK_TCK")
SINCE = pytest.StashKey[float]()
COLLECTED = pytest.StashKey[float]()
#: Of pytest's main process: what its programs used, by name
OF_MAIN = pytest.StashKey[Counter[str]]()
ENDING = pytest.StashKey[dict[int, "Running"] | None]()


class Running(NamedTuple):
    """A process that runs beside the tests."""

    parent: int
    name: str
    seconds: float  #: of it and of its children that have ended


def used() -> float:
    """Return the CPU seconds of this process and of those of its children that have ended."""
    return sum(os.times()[:4])


def running() -> dict[int, Running]:
    """Return the processes below this one, such as control planes (proc_pid_stat(5))."""
    all_of_them = dict(_processes())
    below = {os.getpid()}
    while more := {pid for pid, one in all_of_them.items() if one.parent in below} - below:
        below |= more
    return {pid: one for pid, one in all_of_them.items() if pid in below - {os.getpid()}}


def _processes() -> Iterator[tuple[int, Running]]:
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            name, _, rest = (path / "stat").read_text().partition("(")[2].rpartition(") ")
            if name.startswith("python"):
                words = (path / "cmdline").read_text().split("\0")  # of one that has ended, none
                name = next((Path(word).name for word in words[1:2]), name)
            fields = rest.split()
            yield int(path.name), Running(int(fields[1]), name, sum(map(int, fields[11:15])) / TICK)


def pytest_sessionstart(session: pytest.Session) -> None:
    session.stash[SINCE] = used()
    session.config.stash[OF_MAIN] = Counter()


def pytest_collection_finish(session: pytest.Session) -> None:
    now = used()
    session.stash[COLLECTED] = now - session.stash[SINCE]
    session.stash[SINCE] = now


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    item.stash[ENDING] = None if nextitem else running()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note what a test has used, where a worker's report carries it: in its last one, since each note costs time."""
    report = yield
    if report.when != "teardown":
        return report
    now, stash = used(), item.session.stash
    costs = {COLLECTION: stash[COLLECTED]}
    seconds, stash[SINCE], stash[COLLECTED] = now - stash[SINCE], now, 0.0
    if (ending := item.stash.get(ENDING, None)) is None:
        costs[item.path.relative_to(item.config.rootpath / "tests").parts[0]] = seconds
    else:
        beside = Counter[str]()
        for pid, one in ending.items():
            beside[f"{BESIDE}{one.name}"] += one.seconds
            seconds -= 0 if Path(f"/proc/{pid}").exists() else one.seconds
        costs |= {**beside, REST: max(0.0, seconds)}
    report.user_properties.append((CPU_SECONDS, costs))
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the figures, unless there are few tests."""
    beside = {f"{BESIDE}{name}": seconds for name, seconds in terminalreporter.config.stash[OF_MAIN].items()}
    tiers, files, tests = Counter[str](beside), Counter[str](), Counter[str]()
    for report in chain.from_iterable(terminalreporter.stats.values()):
        for tier, seconds in dict(getattr(report, "user_properties", ())).get(CPU_SECONDS, {}).items():
            tiers[tier] += seconds
            if not tier.startswith(SHARED):
                tests[report.nodeid] += seconds
                files[report.nodeid.partition("::")[0]] += seconds
    if len(tests) > COSTLIEST_TESTS:
        terminalreporter.section(f"{tiers.total():.0f} CPU seconds")
        costliest = files.most_common(COSTLIEST_FILES) + tests.most_common(COSTLIEST_TESTS)
        for name, seconds in tiers.most_common() + costliest:
            if seconds:
                terminalreporter.write_line(f"{seconds:7.1f}  {name}")
