"""Errors that a user can fix; each message is one line: the value, what is wrong, the way out."""

#: Characters of the longest message.
MESSAGE_CHARACTERS = 2000
#: The end of a message of the post-renderer under Helm 4, which adds words of its own before and after it.
END = "\n[the rest of this line is Helm's]"


def one_line(text: str) -> str:
    """Return a text on one line, fit for a terminal."""
    return plain(" ".join(text.split()))


def plain(text: str, kept: str = "") -> str:
    r"""Return a text without control characters, but those that are kept.

    >>> plain("a\tb\n\x1b[31m", "\n\t")
    'a\tb\n\\x1b[31m'
    """
    return "".join(c if c.isprintable() or c in kept else ascii(c)[1:-1] for c in text)


def cut(text: str, most: int) -> str:
    """Return a text, which ends with … where it had more than so many characters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


class MiniClusterError(Exception):
    """Base of all errors that a user can fix."""

    #: The exit code.
    code = 1

    def __str__(self) -> str:
        """Return the message on one line, fit for a terminal; a very long one loses its middle."""
        text = one_line(super().__str__())
        return text if len(text) <= MESSAGE_CHARACTERS else f"{text[: MESSAGE_CHARACTERS - 500]} ... {text[-490:]}"


class StreamError(MiniClusterError):
    """The stream of documents can't be used."""


class SettingError(MiniClusterError):
    """A person's settings can't be read."""


class SpecError(MiniClusterError):
    """A MiniCluster document has a wrong value."""


class CurveError(MiniClusterError):
    """There is no usable CURVE certificate."""


class BurstError(MiniClusterError):
    """A burst can't be made, joined or removed."""


class ManifestError(MiniClusterError):
    """The manifests can't be written as asked."""


class ConvertError(MiniClusterError):
    """A MiniCluster of flux-operator can't be converted."""


class StatusError(MiniClusterError):
    """There is nothing to show."""


class AbsentError(StatusError):
    """There is no such MiniCluster."""


class StateError(MiniClusterError):
    """A MiniCluster's state doesn't allow what a command asks for."""


class EndError(StateError):
    """A MiniCluster has ended, or can't start."""


class ChoiceError(StateError):
    """A MiniCluster has no such node, group or container, or no such size."""


class DeadlineError(StateError):
    """The time of a wait is over."""


class ToolError(MiniClusterError):
    """Helm, kubectl or a program of the user is missing or fails."""


class KubernetesError(MiniClusterError):
    """Kubernetes gave no answer that helps; ``reason`` is why, without the request."""

    def __init__(self, message: str, reason: str = "", status: int = 0) -> None:
        """Keep the reason, by default the message, and the HTTP status; 0 if there was no answer."""
        super().__init__(message)
        self.reason, self.status = reason or message, status

    @property
    def is_forbidden(self) -> bool:
        """Whether this user has no right to do that."""
        return self.status == 403


class RefusedError(KubernetesError):
    """Kubernetes refuses a request."""


class AwayError(KubernetesError):
    """Kubernetes, or a pod, can't be reached: the same request may succeed a little later."""


class AccessError(StateError, StatusError):
    """What a command needs to know of Kubernetes is not to be had; ``cause`` is Kubernetes' error."""

    def __init__(self, cause: KubernetesError, way_out: str) -> None:
        super().__init__(f"{cause.reason}: {way_out}")
        self.cause = cause


class OutputError(MiniClusterError):
    """The output can't be written."""


class UsageError(MiniClusterError):
    """The command line is wrong."""

    code = 2


class Interrupted(MiniClusterError):  # noqa: N818 - not an error
    """Someone pressed Ctrl-C, or another signal came."""

    def __init__(self, message: str, code: int = 130) -> None:
        super().__init__(message)
        self.code = code
