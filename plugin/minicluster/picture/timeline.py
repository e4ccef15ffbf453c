"""A MiniCluster over time, from what is told of its jobs, nodes and sizes. It keeps a bounded part of the past.

A pure model: it asks nobody, and knows no clock.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from minicluster.cluster.states import ENDED_STATES
from minicluster.picture import node_history
from minicluster.picture.job_history import (
    MOST_RECORDS,
    JobHistory,
    Sample,
    cores_of,
    curve,
    shown,
    status_of,
    steps_of,
    thinned,
)
from minicluster.picture.node_history import Mark, NodeHistory
from minicluster.picture.use_history import UseHistory
from minicluster.status.reported import PICTURE_JOBS, TIMES
from minicluster.status.table import Row, duration, rows_of

Data = dict[str, Any]
#: Seconds between two samples of the queue; those in which a size that changed has its reason
SAMPLE_SECONDS, REASON_SECONDS = 1.0, 60.0
#: How the agent tells that it has changed the size (pod/agent/scaled_job.py)
SCALED = re.compile(r"(?:group [^:]+: )?(size (\d+) -> (\d+)): ")


class Timeline:
    """Jobs, nodes, marks and samples, and what has changed of them since the last `changes`."""

    def __init__(self, name: str, most: int = PICTURE_JOBS) -> None:
        self.name = name
        self.jobs, self.nodes = JobHistory(most), NodeHistory(name)
        self.use = UseHistory()
        self.samples: list[Sample] = []
        self.status: Mapping[str, Any] = {}  #: the document of `minicluster status`
        self.trouble = ""  #: why it is not known how it is now
        self.told: float | None = None  #: when the lead told the status last, by its clock
        self.ahead_seconds = 0.0  #: how far the lead's clock is ahead of ours
        self.is_record = False  #: whether it is the record of a run, which nobody tells more of
        self.size: int | None = None
        self.sizes: list[tuple[float, int]] = []  #: by time
        self._touched: set[int] = set()
        self._touched_inside: set[str] = set()
        self._gone: list[str] = []
        self._sampled = 0  # samples that were told
        self._has_past = self._is_changed = False

    # what is told ---------------------------------------------------------------------------------------------

    def take_past(self, rows: Sequence[Mapping[str, Any]], now: float) -> None:
        """Take all jobs that there are; of those that were active and are no longer there, the queue was lost."""
        lost = self.jobs.lost(rows, now + self.ahead_seconds) if self._has_past else []
        self.take_jobs([*lost, *rows])
        if not self._has_past:
            self._has_past = True
            self._begin_curve()

    def take_jobs(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Take jobs, or what has changed of them, and whole records of those inside of others."""
        known = [*rows]
        touched, gone = self.jobs.take(row for row in known if row["number"] is not None)
        inside, inside_gone = self.jobs.take_inside(row for row in known if row["number"] is None)
        self._touched_inside = (self._touched_inside | inside) - set(inside_gone)
        for number in touched:
            job = self.jobs.jobs[number]
            if "lanes" in job:
                self.nodes.use(job["ranks"], job.get("nodes") or "")
        self._touched = (self._touched | touched) - set(gone)
        self._gone += [*map(str, gone), *inside_gone]
        self._is_changed = True

    def take_nodes(
        self, events: Sequence[Mapping[str, Any]], hosts: Sequence[str] = (), cores: Mapping[str, int] | None = None
    ) -> None:
        """Take events of nodes, and the names and the cores of all."""
        if hosts:
            self.nodes.take_hosts(hosts, cores or {})
        last = self.samples[-1].t if self.samples else math.inf
        if self.nodes.take(events) and min(event["t"] for event in events) < last:
            self._begin_curve()
        self._is_changed = True

    def take_use(self, told: Mapping[str, Mapping[str, Any]], now: float) -> None:
        """Take what jobs use now, as the nodes of those that run tell it."""
        rows = {number: self.jobs.jobs[number] for number in self.jobs.running()}
        self.use.take(told, rows, self.nodes.up, now)
        self._is_changed = True

    def take_size(self, size: int, now: float, scaled: Iterable[tuple[float, str]] = ()) -> None:
        """Take the size as it is now, and the times and texts of the agent's changes, which may come twice."""
        for when, text in sorted(scaled):
            self._take_scaled(Mark(when, "size", text))
        if size != self.size:
            if self.size is not None and not self._is_told(size, now):
                self.nodes.marks.append(Mark(now, "size", f"size {self.size} -> {size}"))
            self.sizes.append((now, size))
        self.size = size
        self._is_changed = True

    def _take_scaled(self, mark: Mark) -> None:
        match = SCALED.match(mark.text)
        if mark in self.nodes.marks:
            return
        self.nodes.marks.append(mark)
        if not match:
            return
        for plain in [each for each in self.nodes.marks if each.text == match[1] and each.t > mark.t - REASON_SECONDS]:
            self.nodes.marks.remove(plain)
        if not mark.text.startswith("group "):
            self.sizes += [(mark.t - 0.001, int(match[2])), (mark.t, int(match[3]))]
            self.sizes.sort()

    def _is_told(self, size: int, now: float) -> bool:
        recent = (mark for mark in self.nodes.marks if mark.kind == "size" and now - mark.t < REASON_SECONDS)
        return any((match := SCALED.match(mark.text)) and int(match[3]) == size for mark in recent)

    def take_status(self, document: Mapping[str, Any], trouble: str = "") -> None:
        """Take the document of `minicluster status`, or why there is none; then the last one stays."""
        self.status, self.trouble = document or self.status, trouble
        self._is_changed = True

    # what is shown --------------------------------------------------------------------------------------------

    @property
    def is_over(self) -> bool:
        """Whether nothing more happens."""
        return self.is_record or self.status.get("state") in ENDED_STATES

    def clock(self, now: float) -> float:
        """Return the lead's time now by ours, or where it is over the last time that is known."""
        if not self.is_over:
            return now + self.ahead_seconds
        jobs = (job.get(key) for job in self.jobs.jobs.values() for key in TIMES)
        return max([*filter(None, jobs), *(mark.t for mark in self.nodes.marks)], default=now)

    def _begin_curve(self) -> None:
        """Make the samples of the past anew, from all that is known."""
        jobs = self.jobs.jobs.values()
        self.samples = curve([*self.nodes.steps, *(step for job in jobs for step in steps_of(job))])
        self._sampled = 0

    def _sample(self, now: float) -> None:
        last = self.samples[-1] if self.samples else Sample(0.0)
        active = [self.jobs.jobs[number] for number in self.jobs.active]
        running = [job for job in active if status_of(job) != "PENDING"]
        sample = Sample(now, len(active) - len(running), len(running), sum(map(cores_of, running)), len(self.nodes.up))
        if now - last.t >= SAMPLE_SECONDS and sample[1:] != last[1:]:
            self.samples.append(sample)
        if len(self.samples) > 2 * MOST_RECORDS:
            self.samples, self._sampled = thinned(self.samples), 0

    def snapshot(self, now: float) -> Data:
        """Return all that is shown, as JSON has it."""
        now = self.clock(now)
        data = {
            "jobs": [shown(job) for job in (*self.jobs.jobs.values(), *self.jobs.inside.values())],
            "samples": self.samples,
            "use": self.use.all(),
            "all": True,
        }
        return data | self._whole(now)

    def changes(self, now: float) -> Data | None:
        """Return what has changed since the last call; None if nothing has."""
        now = self.clock(now)
        self._sample(now)
        if not self._is_changed:
            return None
        jobs = [shown(self.jobs.jobs[number]) for number in sorted(self._touched)]
        jobs += [shown(self.jobs.inside[name]) for name in sorted(self._touched_inside)]
        samples = self.samples[self._sampled :]
        data: Data = {"jobs": jobs, "gone": self._gone, "samples": samples, "use": self.use.changes()}
        if not self._sampled:
            data["newSamples"] = True
        self._touched, self._touched_inside, self._gone = set(), set(), []
        self._sampled, self._is_changed = len(self.samples), False
        return data | self._whole(now)

    def _whole(self, now: float) -> Data:
        """Return what is shown anew each time: it is small."""
        nodes = node_history.rows(self.nodes, self.status, self.size)
        lanes = self.jobs.lanes
        return {
            "now": now,
            "isOver": self.is_over,
            "name": self.name,
            "nodes": [{**row, "lanes": lanes.count(row["rank"])} for row in nodes],
            "marks": [mark._asdict() for mark in sorted(self.nodes.marks)],
            "sizes": self.sizes,
            "state": self.status.get("state", ""),
            "rows": [row[:3] for row in self._rows(now)],
            "trouble": self.trouble,
        }

    def _rows(self, now: float) -> list[Row]:
        """Return the rows of the status, with the last change of the size and the job that has waited longest."""
        rows = list(rows_of(self.status)) if self.status else []
        if self.told and not self.is_over:
            # a mark may be newer than the figures
            rows.append(Row("Figures", f"of {datetime.fromtimestamp(self.told, UTC):%H:%M:%S} UTC"))
        sizes = [mark for mark in sorted(self.nodes.marks) if mark.kind == "size"]
        if sizes:
            rows.append(Row("Last change", f"{sizes[-1].text}, {duration(max(0.0, now - sizes[-1].t))} ago"))
        waiting = [job for number in self.jobs.active if status_of(job := self.jobs.jobs[number]) == "PENDING"]
        if waiting:
            rows.append(self._oldest(min(waiting, key=lambda job: job.get("t_submit") or now), now))
        return rows

    def _oldest(self, job: Mapping[str, Any], now: float) -> Row:
        name, waits = job.get("id", ""), self.status.get("waiting") or ()
        why = next((each["reason"] for each in waits if name in [one.replace("ƒ", "f") for one in each["jobs"]]), "")
        since = duration(max(0.0, now - (job.get("t_submit") or now)))
        return Row(
            "Oldest", f"job {name} ({job.get('name') or '-'}) for {since}" + (f": {why}" if why else ""), "waits"
        )
