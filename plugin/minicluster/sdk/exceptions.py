"""The SDK's errors: each message is one line that names the value, what is wrong and the way out.

::

    MiniClusterError
    └── SdkError
        ├── ArgumentError      a wrong argument (also a ValueError)
        ├── NotFoundError      there is no such MiniCluster
        ├── ApiError           Kubernetes refuses, or can't be reached
        ├── ReleaseError       Helm, or the chart, refuses
        ├── EndedError         the MiniCluster has ended
        ├── ClosedError        it was closed, or its executor was (also a RuntimeError)
        ├── WaitTimeoutError   it took too long (also a TimeoutError)
        └── JobError           it has no result
            ├── JobFailed      the job failed: exit code and output
            ├── JobRefused     Flux doesn't take the job
            └── JobLost        the job is not known any more
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from minicluster import errors
from minicluster.lead.ask import LateError


class SdkError(errors.MiniClusterError):
    """Base of all errors of the SDK."""


class ArgumentError(SdkError, ValueError):
    """An argument is wrong."""


class NotFoundError(SdkError):
    """There is no such MiniCluster."""


class ApiError(SdkError):
    """Kubernetes refuses a request, or can't be reached; ``status`` is HTTP's, 0 if there was no answer."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class ReleaseError(SdkError):
    """Helm refuses or fails."""


class EndedError(SdkError):
    """The MiniCluster has ended."""


class ClosedError(SdkError, RuntimeError):
    """The MiniCluster, or its executor, was closed."""


class WaitTimeoutError(SdkError, TimeoutError):
    """A wait took longer than its timeout."""


class JobError(SdkError):
    """A job did not end well."""


class JobRefused(JobError):  # noqa: N818 - what happened
    """Flux doesn't take the job."""


class JobLost(JobError):  # noqa: N818 - what happened
    """Flux no longer has the job: the lead's state was lost."""


#: The SDK's errors by those of the rooms below; the first that fits counts
MEANT: tuple[tuple[type[errors.MiniClusterError] | tuple[type[errors.MiniClusterError], ...], type[SdkError]], ...] = (
    ((errors.DeadlineError, LateError), WaitTimeoutError),
    (errors.EndError, EndedError),
    ((errors.ChoiceError, errors.UsageError), ArgumentError),
    (errors.StatusError, NotFoundError),
    ((errors.ToolError, errors.SpecError), ReleaseError),
)


def meant(error: errors.MiniClusterError) -> SdkError:
    """Return an error of the rooms below as the SDK's."""
    if isinstance(error, SdkError):
        return error
    cause = error.cause if isinstance(error, errors.AccessError) else error
    if isinstance(cause, errors.KubernetesError):
        return ApiError(str(cause), cause.status)
    kind = next((kind for those, kind in MEANT if isinstance(error, those)), ApiError)
    if kind is not ReleaseError:
        return kind(str(error))
    from minicluster.release import helm  # noqa: PLC0415 - it is needed after a failure alone

    return kind(helm.explain(error))


@contextmanager
def translated() -> Iterator[None]:
    """Raise errors of the rooms below as the SDK's."""
    try:
        yield
    except errors.MiniClusterError as error:
        raise meant(error) from None
