"""The track record: faults of the past, each as the change that brings it back, and a seed with which it is seen.

A change that makes one of them undetectable is incomplete: `python -m tools.simulator --faults` runs them all.
"""

from typing import NamedTuple

from tools.simulator.disturb import episode


class Fault(NamedTuple):
    """A mend that is taken back."""

    what: str  #: what went wrong
    program: str  #: the module of the pods
    now: str  #: its text
    then: str  #: the text with the fault
    seed: int


FAULTS = (
    Fault(
        "a copy ran beside its job, which went on",
        "requeue",
        '    if runs:\n        kept.append({"scheme": "afternotok", "value": name})',
        "",
        seed=4,
    ),
    Fault(
        "two pods that left each had a copy made of one job",
        "put_back",
        "copies = {name: JobID(copy).f58plain for name, copy in waiting_copies(handle) if name in names}\n",
        "copies: dict[str, str] = {}\n    all_copies.made.clear()\n",
        seed=4,
    ),
    Fault(
        "a job was put back twice, by the undrainer and by the one that was started again",
        "losses",
        "if self.copies.has(self.handle, job, self.first):",
        'if job["id"] in self.copies.made:',
        seed=6,
    ),
    Fault("jobs started on a lead that was leaving", "leave", "        stop_queue(handle)\n", "", seed=2),
    Fault("the agent never asked again after an outage", "agent", "2 * wait, now + wait", "2 * wait, math.inf", seed=1),
    Fault(
        "the cluster shrank below what a waiting job needs",
        "need",
        "    if is_held:\n        return Need(group.size)\n",
        "",
        seed=1,
    ),
    Fault(
        "jobs lost with a node were overlooked",
        "losses",
        'for states in ("running", "failed"):',
        'for states in ("running",):',
        seed=6,
    ),
    Fault(
        "ranks of pods that are gone stayed drained",
        "undrainer",
        "undrain(handle, [*gone, *(online",
        "undrain(handle, [*(online",
        seed=1,
    ),
    Fault(
        "a pod's drain was lifted while it still left",
        "undrainer",
        "now - seconds > drains[rank] + EXACT_SECONDS",
        "True",
        seed=17,
    ),
    Fault(
        "a job of a killed lead was never run again",
        "losses",
        '*("failed to create guest ns", "reattach to running job is not implemented"),',
        "",
        seed=6,
    ),
    Fault(
        "the copy of a job was made when it had ended",
        "leave",
        "    copies = requeue.put_back(running)\n",
        "    copies: dict[str, str] = {}\n",
        seed=1,
    ),
    Fault(
        "a job was lost with a lead that was killed before it had looked for lost jobs",
        "losses",
        "max(_last_begin(handle), self.begin - BACK_SECONDS)",
        "self.begin",
        seed=10,
    ),
    Fault(
        "a job ran twice: its leaving pod had asked for a copy, and then it lost a node",
        "losses",
        "if self.copies.has(self.handle, job, self.first):",
        "if self.copies.made.pop(job['id'], None) and self.copies.has(self.handle, job, self.first):",
        seed=6,
    ),
    Fault(
        "a node left with a job that had just started there",
        "scaled_job",
        "if busy and any(rank in busy.used for rank in leaving):",
        "if False:",
        seed=117,
    ),
    Fault(
        "the jobs of a leaving pod were not put back",
        "requeue",
        "return ask_for_copies(self.handle, wanted) if wanted and not self.lost else {}",
        "return {}",
        seed=1,
    ),
    Fault(
        "the queue of a lead that came back was stopped",
        "leave",
        '"nocheckpoint": True, ',
        '"nocheckpoint": False, ',
        seed=1,
    ),
    Fault(
        "a job was tried again beside the copy that its leaving pod had asked for",
        "losses",
        'self.copies.make(self.handle, job, {"retried"',
        'Copies().make(self.handle, job, {"retried"',
        seed=33,
    ),
    Fault(
        "a job was not tried again because the lead was killed just then",
        "losses",
        'if getattr(error, "errno", None) in GONE_ERRORS:',
        "if False:",
        seed=2,
    ),
    Fault("a job was not tried again until another one ended", "recorder", "min(2 * most,", "min(60 * most,", seed=50),
    Fault(
        "a job was stopped for another one as soon as it ran",
        "preemption",
        " and job.ran >= self.rules.least_run]",
        "]",
        seed=52,
    ),
    Fault(
        "a job that waits for a group kept the group small",
        "pending",
        'request = replace(parse_resources(jobspec["resources"]), since=now, ranks=self._ranks(jobspec))',
        'request = replace(parse_resources(jobspec["resources"]), since=now)',
        seed=19,
    ),
    Fault(
        "a client's job was submitted twice: the program of its broken connection still had it to submit",
        "remote",
        '            ("client", lambda key, *_: end_former(key)),\n',
        "",
        seed=230,
    ),
    Fault(
        "a client's job was submitted twice: it was not listed yet",
        "remote",
        "    catch_up(self.handle)\n",
        "    pass\n",
        seed=45,
    ),
    Fault(
        "a client was told that its job never ran, which had ended while it was away",
        "followed",
        'return name == "clean" and (self.end["status"] is not None or bool(self.end["exception"]))',
        'return bool(name == "clean")',
        seed=86,
    ),
    Fault(
        "a client's job was submitted twice: Flux still validated it when its program was killed",
        "begun",
        'looks += not any(crew["backlog"] for crew in crews)',
        "looks += 1",
        seed=86,
    ),
    Fault(
        "a job had two copies: a leaving pod asked for one while Flux validated that of an undrainer that was killed",
        "put_back",
        "    catch_up(own)\n",
        "",
        seed=16,
    ),
    Fault(
        "a group that Kueue had never started got no pods once the agent had emptied it",
        "kube",
        '{"suspend": is_held(job), "parallelism": 0}',
        '{"suspend": False, "parallelism": 0}',
        seed=78,
    ),
    Fault("an interrupted replacement did not go on", "replace", "is_half = not is_up and", "is_half = False and", 543),
    Fault(
        "a replacement that was interrupted came back to values with which no pod starts",
        "revisions",
        "before = None if is_up else revision.before",
        "before = None",
        seed=543,
    ),
    Fault(
        "a failed replacement came back to one that had failed before it",
        "revisions",
        "is_up = is_up and not revision",
        "_ = is_up and not revision",
        seed=18223,
    ),
    Fault(
        "bursts followed no lead after the first one that was lost",
        "demand",
        "                self._say_once(str(error))\n",
        "                self.stop(error)\n",
        seed=9,
    ),
    Fault(
        "a burst stayed that no job needed",
        "follower",
        "        elif decision.size < self._size:\n            self._shrink(decision.size)\n",
        "",
        seed=9,
    ),
    Fault(
        "a release that was half removed by a killed Helm stayed, with the certificate",
        "follower",
        "        if now >= self._left + revisions.KILLED_SECONDS:",
        "        if False:",
        seed=49,
    ),
    Fault("the bursts of a root that had ended stayed", "demand", "if end and (job or", "if False and (job or", seed=9),
    Fault(
        "a client was told that its job had failed, which the lead put back later",
        "recorded",
        "self.has_looked or now > self.begin + LOOK_BACK_SECONDS or has_looked(self.handle)",
        "True",
        seed=341,
    ),
)


def is_detected(fault: Fault) -> bool:
    """Tell whether something breaks with a fault."""
    try:
        episode(fault.seed, {fault.program: (fault.now, fault.then)})
    except AssertionError:
        return True
    return False
