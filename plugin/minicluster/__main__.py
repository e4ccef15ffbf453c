"""``python -m minicluster``, and the command ``minicluster``.

Ctrl-C ends it quietly from here on: a KeyboardInterrupt would end some imports, and the interpreter's own end, with a
traceback. So imports are inside functions.
"""

import os
import signal
import sys
from contextlib import suppress


def main() -> None:
    """Run the front door."""
    _guard()
    from minicluster import cli  # noqa: PLC0415 - see the top
    from minicluster.console import signals  # noqa: PLC0415 - see the top

    try:
        cli.main()
    except SystemExit as end:
        if isinstance(end.code, int) and end.code in signals.EXIT_CODES:
            # `python -m` itself would end by SIGINT if the signal came while an import executed a string, as that of a
            # dataclass does: it takes that KeyboardInterrupt for one that nobody has caught
            os._exit(end.code)
        raise


def complete() -> None:
    """Answer kubectl, which completes `kubectl minicluster`."""
    _guard()
    from minicluster import cli  # noqa: PLC0415 - see the top

    cli.complete()


def _guard() -> None:
    """Let Ctrl-C end the process, unless the caller ignores it: a shell's &, for example."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def _end(*_: object) -> None:
    # imported here, it could be half loaded; without it, nothing has begun
    streams = sys.modules.get("minicluster.console.streams")
    if streams and hasattr(streams, "program"):
        # without colours: what they need may be half loaded, too
        with suppress(OSError):
            os.write(2, f"{streams.program()}: interrupted\n".encode())
    os._exit(130)


if __name__ == "__main__":
    main()
