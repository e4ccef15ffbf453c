"""What a run cost: CPU seconds by tier, and the costliest files and tests. Minutes say more of the machine."""

import os
from collections import Counter
from collections.abc import Generator
from itertools import chain

import pytest

COSTLIEST_FILES, COSTLIEST_TESTS = 40, 10
#: What runs beside the tests of a worker and ends with its last one
SHARED = "control planes, and what else tests share"
#: The name of a report's property
CPU_SECONDS = "CPU seconds"
SINCE = pytest.StashKey[float]()
IS_LAST = pytest.StashKey[bool]()


def used() -> float:
    """Return the CPU seconds of this process and of those of its children that have ended."""
    return sum(os.times()[:4])


def pytest_sessionstart(session: pytest.Session) -> None:
    session.stash[SINCE] = used()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    item.stash[IS_LAST] = nextitem is None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note what each phase of a test has used, where a worker's report carries it."""
    report = yield
    now = used()
    tier = SHARED if item.stash.get(IS_LAST, False) else item.path.relative_to(item.config.rootpath / "tests").parts[0]
    report.user_properties.append((CPU_SECONDS, (tier, now - item.session.stash[SINCE])))
    item.session.stash[SINCE] = now
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the figures, unless there are few tests."""
    tiers, files, tests = Counter[str](), Counter[str](), Counter[str]()
    for report in chain.from_iterable(terminalreporter.stats.values()):
        tier, seconds = dict(getattr(report, "user_properties", ())).get(CPU_SECONDS, ("", 0))
        tiers[tier] += seconds
        if tier != SHARED:
            tests[report.nodeid] += seconds
            files[report.nodeid.partition("::")[0]] += seconds
    if len(tests) > COSTLIEST_TESTS:
        terminalreporter.section(f"{tiers.total():.0f} CPU seconds")
        costliest = files.most_common(COSTLIEST_FILES) + tests.most_common(COSTLIEST_TESTS)
        for name, seconds in tiers.most_common() + costliest:
            if seconds:
                terminalreporter.write_line(f"{seconds:7.1f}  {name}")
