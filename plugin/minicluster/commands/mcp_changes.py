"""The tools of ``minicluster mcp`` that change something: each says what is lost, and asks the user of the agent."""

import inspect
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Annotated, Any, NamedTuple, TypeVar

from mcp.server.elicitation import AcceptedElicitation, ElicitationResult
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.resolve import Elicit, Resolve
from mcp.server.mcpserver.tools import Tool
from mcp.types import ToolAnnotations
from pydantic import BaseModel, Field

from minicluster.commands.mcp_results import TEXT_SCHEMA, TEXTS_SCHEMA, noted, told, tool
from minicluster.console import streams
from minicluster.errors import StateError, cut, one_line
from minicluster.kube.kubectl import Kubernetes
from minicluster.lifecycle import deletion, scaling
from minicluster.sdk import JobOptions, MiniCluster
from minicluster.status import why

#: Names of Kubernetes, and ids of Flux: no word of an agent is an option of a program
NAME_PATTERN, NAME_OR_NONE, ID_PATTERN = (
    "^[a-z0-9][a-z0-9.-]{0,62}$",
    "^([a-z0-9][a-z0-9.-]{0,62})?$",
    "^[ƒ0-9A-Za-z.][ƒ0-9A-Za-z.-]*$",
)
Name = Annotated[str, Field(pattern=NAME_PATTERN, description="Name of a MiniCluster, as list shows it")]
JobId = Annotated[str, Field(pattern=ID_PATTERN, description="Id of a job, as jobs shows it")]
#: Seconds in which Flux has to take a job, and a release to go
SUBMIT_SECONDS, DELETE_SECONDS = 60.0, 600.0
#: Characters of a command in a question
QUESTION_CHARACTERS = 400
Method = TypeVar("Method", bound=Callable[..., Any])


class JobOption(NamedTuple):
    """An option of a job, as an agent gives it."""

    kind: Any  #: its type, and what it means
    form: str  #: of `flux submit`
    unset: Any = None


JOB_OPTIONS = {
    "nodes": JobOption(
        Annotated[int | None, Field(ge=1, description="Whole nodes, with a task each; with tasks: nodes to share")],
        "-N{}",
    ),
    "tasks": JobOption(Annotated[int | None, Field(ge=1, description="1 by default, or one for each node")], "-n{}"),
    "cores_per_task": JobOption(Annotated[int | None, Field(ge=1, description="Cores of each task")], "-c{}"),
    "gpus_per_task": JobOption(Annotated[int | None, Field(ge=0, description="GPUs of each task")], "-g{}"),
    "time_limit": JobOption(Annotated[float | None, Field(gt=0, description="Time limit in seconds")], "-t{:g}s"),
    "queue": JobOption(Annotated[str, Field(description="A queue, where they have names")], "-q{}", ""),
}


def with_job_options(tool_method: Method) -> Method:
    """Give a method JOB_OPTIONS as parameters, which it has as keywords."""
    parameters = inspect.signature(tool_method).parameters.values()
    own = [each for each in parameters if each.kind is not inspect.Parameter.VAR_KEYWORD]
    added = [_keyword(name, each.kind).replace(default=each.unset) for name, each in JOB_OPTIONS.items()]
    tool_method.__signature__ = inspect.Signature([*own, *added])  # type: ignore[attr-defined]
    return tool_method


def job_options(given: Mapping[str, Any]) -> JobOptions:
    """Return the options of a job, without those that are not set."""
    options: Any = {key: value for key, value in given.items() if key != "queue" and value is not None}
    known: JobOptions = options | ({"attributes": {"system.queue": queue}} if (queue := given.get("queue")) else {})
    return known


def _keyword(name: str, annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation)


class Agreement(BaseModel):
    """What a user is asked for."""

    agreed: bool = Field(description="Do it")


class _Asked(Exception):  # noqa: N818 - no error
    """A change has come to its question."""


class Changes:
    """What changes the MiniClusters of a namespace; each calls ``agree`` before it changes anything."""

    def __init__(self, kube: Kubernetes) -> None:
        self.kube = kube

    @with_job_options
    def submit(
        self,
        name: Name,
        command: Annotated[list[str], Field(min_length=1, description="Words of the command; no shell reads them")],
        *,
        say: streams.Say,
        agree: streams.Agree,
        **given: Any,
    ) -> dict[str, Any]:
        """Submit a command as a job, and return its id at once."""
        options = job_options(given)
        asks = ", ".join(f"{key}={value}" for key, value in options.items())
        say(f"the job runs {cut(shlex.join(command), QUESTION_CHARACTERS)}{f' with {asks}' if asks else ''}")
        agree(f"Submit it to {name}?", "nothing")
        with MiniCluster(self.kube, name, is_own=False) as cluster:
            future = cluster.submit(command, **options)
            try:
                return {"job": future.wait_for_id(SUBMIT_SECONDS)}
            except TimeoutError as error:
                future.cancel()
                raise StateError(str(error)) from None

    def cancel(self, name: Name, job: JobId, *, say: streams.Say, agree: streams.Agree) -> dict[str, Any]:
        """Cancel a job that waits or runs."""
        cluster, known = why.ask_job(self.kube, name, job)
        record = known["job"]
        who = f"job {record['id']} ({record['name']})"
        if record["state"] == "INACTIVE":
            raise StateError(f"{who} has ended: {record['result']}")
        runs = record["state"] in ("RUN", "CLEANUP")
        say(f"{who} runs on {record['nodes']}: what it has not saved is lost" if runs else f"{who} waits")
        agree(f"Cancel {record['id']}?", "jobs")
        done = MiniCluster(self.kube, cluster.name, is_own=False).flux("cancel", record["id"], timeout=SUBMIT_SECONDS)
        if done.exit_code:
            raise StateError(done.stderr or done.stdout)
        return {"job": record["id"]}

    def scale(
        self,
        name: Name,
        size: Annotated[int | None, Field(ge=0, description="Nodes; null lets the autoscaler choose")],
        group: Annotated[str, Field(pattern=NAME_OR_NONE, description="A group; by default its own nodes")] = "",
        *,
        say: streams.Say,
        agree: streams.Agree,
    ) -> dict[str, Any]:
        """Change the size of a MiniCluster, up to its maxSize. The nodes come later: status shows them."""
        scaling.scale(self.kube, name, size, group, None, streams.aloud(say), agree=agree)
        return {}

    def delete(self, name: Name, *, say: streams.Say, agree: streams.Agree) -> dict[str, Any]:
        """Remove a MiniCluster, with its release."""
        deletion.delete(self.kube, name, DELETE_SECONDS, streams.aloud(say), agree)
        return {}

    def tools(self, allowed: Iterable[str]) -> Iterator[Tool]:
        """Yield tools for some changes."""
        for name in dict.fromkeys(allowed):
            schema = noted(said=TEXTS_SCHEMA, **({"job": TEXT_SCHEMA} if name in ("submit", "cancel") else {}))
            hints = ToolAnnotations(read_only_hint=False, destructive_hint=name != "submit", open_world_hint=False)
            yield tool(self._asking(getattr(self, name)), schema, hints)

    def _asking(self, change: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
        """Return a change that asks first. What it says then has to be what it says at the change."""
        given = [each for each in inspect.signature(change).parameters.values() if each.name not in ("say", "agree")]

        def foresee(**words: Any) -> str:
            with told():
                return self._foreseen(change, words)

        def ask(context: Context[Any, Any], foreseen: str, **words: Any) -> Elicit[Agreement]:
            if not _can_ask(context):
                way = streams.pasteable_command(_command(change.__name__, words))
                why = "nothing has changed, as this agent can't ask its user"
                raise ToolError(f"{foreseen}\n{why}: a person can run `{way}`")
            return Elicit(foreseen, Agreement)

        def perform(foreseen: str, answer: ElicitationResult[Agreement], **words: Any) -> dict[str, Any]:
            if not (isinstance(answer, AcceptedElicitation) and answer.data.agreed):
                raise ToolError("nothing has changed: the user has not agreed")
            said: list[str] = []

            def agree(question: str, _stake: streams.Stake) -> None:
                if self._question(said, question) != foreseen:
                    raise StateError(f"nothing has changed, as now it would be otherwise: {'; '.join(said)}; ask again")
                said.clear()

            made = change(**words, say=said.append, agree=agree)
            return {"said": [streams.pasteable(text) for text in said], **made}

        seen = _keyword("foreseen", Annotated[str, Resolve(foresee)])
        _sign(foresee, given)
        _sign(ask, [*given, _keyword("context", Context), seen])
        _sign(perform, [*given, seen, _keyword("answer", Annotated[ElicitationResult[Agreement], Resolve(ask)])])
        perform.__name__, perform.__doc__ = change.__name__, change.__doc__
        return perform

    def _foreseen(self, change: Callable[..., Any], words: Mapping[str, Any]) -> str:
        """Return what a change would say before it asks, and its question. Raises what it raises before that."""
        said: list[str] = []

        def stop(question: str, _stake: streams.Stake) -> None:
            raise _Asked(question)

        try:
            change(**words, say=said.append, agree=stop)
        except _Asked as asked:
            return self._question(said, str(asked))
        raise AssertionError(f"{change.__name__} changes without a question")

    def _question(self, said: list[str], question: str) -> str:
        lines = [*(said or ["No job is lost."]), f"In {self.kube}: {question}"]
        return "\n".join(one_line(streams.pasteable(text)) for text in lines)


def _can_ask(context: Context[Any, Any]) -> bool:
    capabilities = context.client_capabilities
    asks = capabilities.elicitation if capabilities else None
    # without a mode it is a form
    return asks is not None and (asks.form is not None or asks.url is None)


def _command(change: str, words: Mapping[str, Any]) -> str:
    """Return the command for a person that does the same."""
    name = shlex.quote(words["name"])
    match change:
        case "scale":
            size = "auto" if words["size"] is None else str(words["size"])
            return f"minicluster scale {name} {shlex.quote(f'{group}={size}' if (group := words['group']) else size)}"
        case "submit":
            options = [
                each.form.format(words[key]) for key, each in JOB_OPTIONS.items() if words[key] not in (None, "")
            ]
            return f"minicluster flux {name} -- submit {shlex.join([*options, *words['command']])}"
        case "cancel":
            return f"minicluster flux {name} -- cancel {shlex.quote(words['job'])}"
    return f"minicluster delete {name}"


def _sign(function: Any, parameters: Iterable[inspect.Parameter]) -> None:
    """Give a function parameters by their names, as the SDK reads them."""
    own = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]
    function.__signature__ = inspect.Signature(own)
    function.__annotations__ = {each.name: each.annotation for each in own}
