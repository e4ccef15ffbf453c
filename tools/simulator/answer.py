"""Answers to asynchronous requests of a program with a reactor."""

from collections.abc import Callable, Mapping
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tools.simulator.jobs import JobID

if TYPE_CHECKING:
    from tools.simulator.remote import Reactor


class Answer:
    """The answer to an asynchronous request."""

    def __init__(self, handle: "Reactor", question: Callable[[], Any]) -> None:
        self.handle, self.question, self.is_streaming = handle, question, False
        self.value: Any = None
        self.error: OSError | None = None
        self.arrives = 0.0

    def then(self, callback: Callable[..., None], *words: Any) -> "Answer":
        """Call a function when the answer has come."""
        if self.is_streaming:
            self.handle.listen(lambda value: self._tell(value, callback, words))
        else:
            self.handle.soon(lambda: self._ask(callback, words))
        return self

    def _ask(self, callback: Callable[..., None], words: tuple[Any, ...]) -> None:
        try:
            self.value = self.question()
        except OSError as error:
            self.error = error
        self.handle.soon(lambda: self.handle.post(lambda: callback(self, *words)))

    def _tell(self, value: Any, callback: Callable[..., None], words: tuple[Any, ...]) -> None:
        told, loop = SimpleNamespace(get=lambda: value, reset=lambda: None), self.handle.instance.loop
        # a stream keeps its order
        self.arrives = max(self.arrives, loop.now + self.handle.random_delay())
        tell = partial(self.handle.post, lambda: callback(told, *words))
        loop.at(self.arrives - loop.now, partial(self.handle.instance.if_lives, self.handle.generation, tell))

    def get(self) -> Any:
        """Return the answer. Raises OSError."""
        if self.error:
            raise self.error
        return self.value if self.value is not None else self.handle.ask(self.question)

    get_id = get_event = get

    def get_flux(self) -> "Reactor":
        """Return the connection."""
        return self.handle


class Submission(Answer):
    """The answer to a submission: Flux looks at the job first, also when its program is gone."""

    def __init__(self, handle: "Reactor", jobspec: Mapping[str, Any]) -> None:
        super().__init__(handle, lambda: None)
        self._jobspec = jobspec

    def _ask(self, callback: Callable[..., None], words: tuple[Any, ...]) -> None:
        its = self.handle.check()

        def tell(number: int) -> None:
            self.value = JobID(number)
            self.handle.soon(lambda: self.handle.post(lambda: callback(self, *words)))

        its.ingest(lambda: its.submit(self._jobspec, 16, 5.0), tell)
