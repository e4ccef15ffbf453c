"""The server of ``minicluster mcp``, and its tools that read: each calls what the command of its name calls."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any

from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations
from pydantic import Field

from minicluster.commands.mcp_changes import (
    ID_PATTERN,
    NAME_OR_NONE,
    Changes,
    JobId,
    Name,
    job_options,
    with_job_options,
)
from minicluster.commands.mcp_results import (
    DATA_NOTE,
    NUMBER_SCHEMA,
    TEXT_BYTES,
    TEXT_SCHEMA,
    TEXTS_SCHEMA,
    noted,
    printed,
    tool,
)
from minicluster.console import lines, streams
from minicluster.exec.submitted import read_output
from minicluster.kube.kubectl import Kubernetes
from minicluster.release import helm
from minicluster.sdk import MiniCluster
from minicluster.status import used, why
from minicluster.status.document import status_of
from minicluster.status.listing import find_all
from minicluster.status.reported import find_jobs
from minicluster.waiting import logs as log_of

#: Jobs that have ended, and the most that can be asked for
LAST_JOBS, TOLD_JOBS = 30, 500
INSTRUCTIONS = (
    "MiniClusters are Flux clusters on Kubernetes: each has a queue of jobs, and nodes that are pods. Look first: "
    "list, then status, why and jobs. A change asks the user itself: call it, and don't ask before. "
    "These tools see {kube}. {data}"
)
READ_HINTS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
MayBeJob = Annotated[str, Field(pattern=f"{ID_PATTERN}|^$", description="Id of a job; without it, the MiniCluster")]
Node = Annotated[str, Field(pattern=NAME_OR_NONE, description="A node, such as 3 or gpu-1; by default the lead")]
Container = Annotated[str, Field(pattern=NAME_OR_NONE, description="A sidecar; by default what runs Flux")]
Ended = Annotated[int, Field(ge=0, le=TOLD_JOBS, description="Of those that have ended")]
Bytes = Annotated[int, Field(ge=1, le=TEXT_BYTES, description="How much of its end")]


class Looks:
    """What reads, for the MiniClusters of a namespace. Nothing is woken."""

    def __init__(self, kube: Kubernetes) -> None:
        self.kube = kube

    def list(self) -> dict[str, Any]:
        """List the MiniClusters of the namespace."""
        return {"miniclusters": find_all(self.kube, False, datetime.now(UTC))}

    def status(self, name: Name) -> dict[str, Any]:
        """Show the size, nodes, cores and counts of jobs of a MiniCluster, and what is wrong with it."""
        shown: dict[str, Any] = streams.pasteable(status_of(self.kube, name))
        return shown

    def why(self, name: Name, job: MayBeJob = "") -> dict[str, Any]:
        """Say why a MiniCluster is as it is, or why a job waits, failed, or is slow, and which command mends it."""
        told = why.of_job(self.kube, name, job) if job else why.of_cluster(self.kube, name)
        reasons = [
            {"text": streams.pasteable(text), "command": streams.pasteable_command(way) if way else ""}
            for text, way in told
        ]
        return {"reasons": reasons}

    @with_job_options
    def would_fit(self, name: Name, **given: Any) -> dict[str, Any]:
        """Say whether a job would run now, when, what it would wait for, or why it never can. Submits nothing."""
        return asdict(MiniCluster(self.kube, name, is_own=False).would_fit(**job_options(given)))

    def jobs(self, name: Name, count: Ended = LAST_JOBS) -> dict[str, Any]:
        """List the active jobs, and the last of those that have ended; the newest first."""
        said: list[str] = []
        rows = find_jobs(self.kube, name, said.append, count).rows
        return {"said": said, "jobs": [*reversed(rows)]}

    def output(self, name: Name, job: JobId, last_bytes: Bytes = TEXT_BYTES // 2) -> dict[str, Any]:
        """Return the end of what a job has printed so far, on both streams."""
        text, before = read_output(self.kube, name, job, last_bytes)
        return {"text": text, "bytesBefore": before}

    def logs(
        self, name: Name, node: Node = "", container: Container = "", last_bytes: Bytes = TEXT_BYTES // 2
    ) -> dict[str, Any]:
        """Return the end of the log of a MiniCluster's lead, or of another node."""
        tail = lines.Tail(last_bytes)
        cluster, host = log_of.find_log(self.kube, name, node)
        for part in log_of.show(cluster, host, container):
            tail.take(part.text)
        text, before = tail.end()
        return {"text": text, "bytesBefore": before}

    def use(self, name: Name, job: JobId) -> dict[str, Any]:
        """Say what a job has used of its memory, cores and GPUs, and what to ask for next time."""
        known = why.ask_job(self.kube, name, job)[1]
        record = known["job"]
        now = known["now"] if record["state"] == "RUN" else None
        return {"job": record["id"], "usage": record.get("usage"), "said": [*used.in_words(record, now)]}


REASON_SCHEMA = {
    "type": "object",
    "properties": {"text": TEXT_SCHEMA, "command": TEXT_SCHEMA},
    "required": ["text", "command"],
}
FIT_SCHEMA: dict[str, Mapping[str, Any]] = {
    "refused": {**TEXT_SCHEMA, "description": 'why it can never run, "" if it can'},
    "waits": {**TEXT_SCHEMA, "description": 'why it would wait, "" if it would run now'},
    "seconds": {"type": ["number", "null"], "description": "until it starts; null if that is not known"},
    "needs": {"type": "object", "description": 'the size that it needs, by group, "" for the cluster\'s own nodes'},
    "text": TEXT_SCHEMA,
}
BEFORE_SCHEMA = {**NUMBER_SCHEMA, "description": "how many bytes come before the text, and were left out"}
TAIL_SCHEMA: dict[str, Mapping[str, Any]] = {"text": TEXT_SCHEMA, "bytesBefore": BEFORE_SCHEMA}
#: The documents of the tools
LOOKS: dict[str, Mapping[str, Any]] = {
    "list": noted(miniclusters={"type": "array", "items": printed("list")}),
    "status": printed("status"),
    "why": noted(reasons={"type": "array", "items": REASON_SCHEMA}),
    "would_fit": noted(**FIT_SCHEMA),
    "jobs": noted(said=TEXTS_SCHEMA, jobs={"type": "array", "items": printed("jobs")}),
    "output": noted(**TAIL_SCHEMA),
    "logs": noted(**TAIL_SCHEMA),
    "use": noted(job=TEXT_SCHEMA, usage=printed("jobs")["properties"]["usage"], said=TEXTS_SCHEMA),
}


def server(kube: Kubernetes, allowed: Iterable[str]) -> MCPServer[Any]:
    """Return the server, with tools for the changes that are allowed."""
    looks = [tool(getattr(Looks(kube), name), schema, READ_HINTS) for name, schema in LOOKS.items()]
    return MCPServer(
        "minicluster",
        version=helm.version(),
        instructions=INSTRUCTIONS.format(data=DATA_NOTE, kube=kube),
        tools=[*looks, *Changes(kube).tools(allowed)],
        log_level="ERROR",
    )


def serve(kube: Kubernetes, allowed: Sequence[str]) -> None:
    """Serve over the standard streams until the agent closes them."""
    server(kube, allowed).run()
