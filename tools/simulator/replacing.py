"""A person who changes values by `minicluster replace`, as it ships, and repeats it when it was interrupted."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from random import Random
from types import SimpleNamespace
from typing import Any

from minicluster.errors import Interrupted, MiniClusterError
from minicluster.kube.tool import HELM_SECONDS, CommandError

from tools.simulator.clock import Process
from tools.simulator.commands import Commands
from tools.simulator.helm import Helm, Revision
from tools.simulator.indexed_job import NO_IMAGE
from tools.simulator.instance import REPLACE_NOTE
from tools.simulator.kubernetes import Kubernetes
from tools.simulator.lead import LeadPrograms

#: The Secret with the certificate, and what makes a queue outlive its pods
CERTIFICATE, KEPT = "mc-curve", {"state": {"claimName": "state"}}
#: The time that new pods have, and how long a replacement may take that nobody disturbs
START_SECONDS, REPLACE_SECONDS = 300.0, 1500.0
#: What somebody has to do first after a Helm that was killed
ROLLBACK = "`helm rollback mc` ends it"
#: What replace says where the revision before has no image either: a Helm went on with a command that was killed
OTHER_VALUES = "run the command again with other values"
#: When somebody repeats a command that was interrupted
REPEAT_SECONDS = (1.0, 400.0)
#: Until a lead has missed a command that is gone
MISSED_SECONDS = 70.0
#: How often the machine of somebody who replaces is lost, of all times that the command is killed
LOST_PART = 0.5


class Replacing:
    """A release, and a person with a command line."""

    def __init__(self, kubernetes: Kubernetes, lead: LeadPrograms, size: int) -> None:
        """Install a MiniCluster with a size."""
        self.kubernetes, self.lead, self._size, self.loop = kubernetes, lead, size, kubernetes.loop
        self.commands = Commands(kubernetes, lead, Helm(kubernetes, self._apply))
        values = {"image": "v1", **KEPT}
        self.commands.helm.releases["mc"] = [Revision(1, "deployed", values, "Install complete")]
        for job in kubernetes.jobs.values():
            job.record = record(values)
        self.certificates = [self._certificate()]  #: all that there were
        self.asked = "v1"  #: last
        self.grace: float | None = 0.0
        self.times = 0  #: how often
        self.process: Process | None = None
        self.outcome: MiniClusterError | None = None  #: of the last command; None for success

    def _certificate(self) -> str:
        """Return the certificate of a release that is rendered: the live one, or a new one."""
        secret: Mapping[str, str] = self.commands.secrets.setdefault(CERTIFICATE, {"of": str(self.loop.now)})
        return secret["of"]

    def _apply(self, _release: str, values: Mapping[str, Any]) -> None:
        """Make the objects of a release that are not there. Raises CommandError for others, which are immutable."""
        if self.kubernetes.own.is_there and self.kubernetes.own.record != record(values):
            raise CommandError("helm", "field is immutable")
        self.certificates.append(self._certificate())
        for name, job in self.kubernetes.jobs.items():
            if not job.is_there:
                job.make(0 if name != "mc" else self._size, record(values))
        self.kubernetes.reconcile_soon()

    def begin(self, image: str, grace: float | None) -> None:
        """Ask for an image, unless a command runs already."""
        if self.process and not self.process.is_over:
            return
        does_as_told = ROLLBACK in str(self.outcome)
        self.asked, self.grace, self.outcome = image, grace, Interrupted("killed")
        self.times += 1
        programs = self.commands.programs(self._say)
        kube = self.commands.port(programs)
        vars(getattr(programs, "minicluster.lifecycle.remaking")).update(render=self._render)
        module = getattr(programs, "minicluster.lifecycle.replace")

        def work() -> None:
            self.lead.say(f"replace: {image} is asked, with {grace} s")
            try:
                if does_as_told:
                    with suppress(CommandError):
                        self.commands.run("helm", ["rollback", "mc"], seconds=HELM_SECONDS)
                module.replace(kube, "mc", (f"--set=image={image}",), grace, START_SECONDS, self._say)
                self.outcome = None
            except MiniClusterError as error:
                self.outcome = error
            except KeyboardInterrupt:
                self.outcome = Interrupted("nothing has begun")
            self._say(f"replace: {self.outcome or 'done'}")

        self.process = Process(self.loop, work, lambda: None)

    def _say(self, text: str) -> None:
        self.lead.say(str(text))

    def _render(self, _release: str, _namespace: str, change: Any, _version: str) -> Any:
        """Return what a release would be, as remaking.py does by Helm and the post-renderer."""
        values = {**change.base, **dict(word.removeprefix("--set=").split("=", 1) for word in change.options)}
        return SimpleNamespace(
            record={"maxSize": str(len(self.kubernetes.own.ranks)), **record(values)}, values=values, jobs=[]
        )

    def kill(self, random: Random) -> None:
        """Kill the command, or lose its machine."""
        if self.process and not self.process.is_over:
            self.lead.say("replace: it is killed")
            if random.random() < LOST_PART:
                self.commands.lose()
            self.process.kill()
            self._repeat(random)

    def interrupt(self, random: Random) -> None:
        """Press Ctrl-C."""
        if self.process and not self.process.is_over:
            self.lead.say("replace: Ctrl-C")
            self.process.interrupt()
            self._repeat(random)

    def _repeat(self, random: Random) -> None:
        """Ask for the same again, some time later; the queue goes on meanwhile."""
        self.loop.at(MISSED_SECONDS, partial(self._check_queue, self.times))
        self.loop.at(random.uniform(*REPEAT_SECONDS), lambda: self.begin(self.asked, self.grace))

    def _check_queue(self, times: int) -> None:
        its = self.kubernetes.instance
        is_ours = its.is_stopped and its.stop_reason == REPLACE_NOTE
        assert not (self.times == times and its.is_alive and is_ours), "nobody replaces, and the queue is stopped"

    def settle(self, run: Callable[[float], None]) -> str:
        """Run the same command again until it has done what it can; return what is wrong then."""
        if problem := self._wait(run):
            return problem
        tries = 0
        while self.outcome and not self._is_refused() and (not tries or (tries == 1 and ROLLBACK in str(self.outcome))):
            tries += 1
            if problem := self._ask(self.asked, run):
                return problem
        is_told_other = self.asked == NO_IMAGE and OTHER_VALUES in str(self.outcome)
        if is_told_other and (problem := self._ask("v1", run)):
            return problem
        if self.outcome and not self._is_refused():
            return f"the same command did not go on: {self.outcome}"
        image = self.kubernetes.own.record["image"]
        if image == NO_IMAGE or (not self.outcome and image != self.asked):
            return f"the image is {image}, asked was {self.asked}: {self.outcome}"
        return "" if len(set(self.certificates)) == 1 else "there is another certificate"

    def _is_refused(self) -> bool:
        """Tell whether the image does not exist, and that has been said."""
        return self.asked == NO_IMAGE and "rolled back and runs as before" in str(self.outcome)

    def _ask(self, image: str, run: Callable[[float], None]) -> str:
        """Ask for an image, and let the command end; return what is wrong if it does not."""
        self.begin(image, self.grace)
        return self._wait(run)

    def _wait(self, run: Callable[[float], None]) -> str:
        """Let the command end; return what is wrong if it does not."""
        end = self.loop.now + REPLACE_SECONDS
        while self.process and not self.process.is_over:
            if self.loop.now > end:
                return "a replacement does not end"
            run(10.0)
        return ""

    def end(self) -> None:
        """End all."""
        if self.process:
            self.process.kill()
        self.commands.end()


def record(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the immutable values, as a Job has them."""
    return {"image": values["image"], "state.claimName": values["state"]["claimName"]}
