"""What joblib needs to run its tasks as jobs; joblib is installed where it is imported."""

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

from joblib.parallel import ParallelBackendBase, SequentialBackend


class FluxBackend(ParallelBackendBase):  # type: ignore[misc]  # joblib has no types
    """Runs each batch of joblib as a job of an executor."""

    supports_retrieve_callback = True
    uses_threads = supports_sharedmem = False

    def __init__(self, executor: Executor) -> None:
        super().__init__()
        self._executor = executor
        self._futures = set[Future[Any]]()

    def effective_n_jobs(self, n_jobs: int | None) -> int:
        """Return how many batches joblib submits before it waits; -1 is as many as it has."""
        if n_jobs == 0:
            raise ValueError("n_jobs=0: give the number of jobs at once, or -1")
        most: int = self._executor._max_workers  # type: ignore[attr-defined]
        return 1 if n_jobs is None else n_jobs if n_jobs > 0 else most

    def submit(self, func: Any, callback: Callable[[Any], Any] | None = None) -> Future[Any]:
        """Submit a batch. Its calls alone go to the node, so that needs no joblib."""
        calls = func.items
        future = self._executor.submit(lambda: [one(*arguments, **options) for one, arguments, options in calls])
        self._futures.add(future)
        future.add_done_callback(self._futures.discard)
        if callback:
            future.add_done_callback(callback)
        return future

    def retrieve_result_callback(self, out: Future[Any]) -> Any:
        """Return the results of a batch; raise what it raised."""
        return out.result()

    def abort_everything(self, ensure_ready: bool = True) -> None:  # noqa: ARG002 - joblib gives it
        """Cancel what is left after an error."""
        for future in [*self._futures]:
            future.cancel()

    def get_nested_backend(self) -> tuple[SequentialBackend, None]:
        """Return what a Parallel in a task uses."""
        return SequentialBackend(nesting_level=(self.nesting_level or 0) + 1), None
