"""What can be wrong with the input; each message is one line: the value, what is wrong, the way out."""

#: Characters of a message.
MOST = 2000


class MiniClusterError(Exception):
    """Base of all errors that a user can mend."""

    #: The exit code.
    code = 1

    def __str__(self) -> str:
        """Return the message on one line, fit for a terminal; of a very long one the beginning and the end."""
        line = " ".join(super().__str__().split())
        text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)
        return text if len(text) <= MOST else f"{text[: MOST - 500]} ... {text[-490:]}"


class StreamError(MiniClusterError):
    """The stream of documents can't be used."""


class SpecError(MiniClusterError):
    """A MiniCluster document has a wrong value."""


class CurveError(MiniClusterError):
    """There is no usable CURVE certificate."""


class BurstError(MiniClusterError):
    """A burst can't be made, joined or removed."""


class ManifestError(MiniClusterError):
    """The manifests can't be written as asked."""


class ToolError(MiniClusterError):
    """Helm, kubectl, or a program of the user's, is missing or fails."""


class OutputError(MiniClusterError):
    """What was made can't be written."""


class UsageError(MiniClusterError):
    """The command line is wrong."""

    code = 2


class Interrupted(MiniClusterError):  # noqa: N818 - no error of anybody's
    """Someone pressed Ctrl-C."""
