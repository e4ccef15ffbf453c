"""The front door: post-renders when Helm calls it, else runs the command line; turns errors into exit codes.

Here, and nowhere else, an error becomes one line on standard error and an exit code, never a traceback.
Most imports are inside functions: each caller pays for its own.
"""

import gc
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from minicluster.console import streams
from minicluster.console.terminal import failure
from minicluster.errors import END, Interrupted, MiniClusterError, OutputError, UsageError, one_line

#: The variable by which a shell asks for completions, as click names it.
COMPLETE = "_MINICLUSTER_COMPLETE"
#: What Helm gets when a `condition` leaves nothing to render: it refuses an empty answer.
NOTHING_RENDERED = b"# nothing is rendered\n"


def main() -> None:
    """Post-render when called by Helm (no arguments, a pipe on standard input), else run the command line."""
    streams.open_closed()
    # a shell that asks for completions gives no arguments either, and Helm doesn't call a plugin of kubectl
    is_called_by_helm = len(sys.argv) == 1 and not sys.stdin.isatty() and streams.program() == "minicluster"
    if is_called_by_helm and COMPLETE not in os.environ:
        post_render()
    else:
        run(sys.argv[1:])


def post_render() -> None:
    """Render the stream on standard input, and exit. Helm 4 gets an error as a manifest: it throws standard error away.

    Helm's user waits for the whole process, so it skips what only costs time.
    """
    gc.disable()  # saves 5 ms: all objects live to the end
    plugin = os.environ.get("HELM_PLUGIN_NAME")
    with front_door(tell_helm if plugin == "minicluster" else _say_above if plugin else _say):
        from minicluster.render import postrender, stream  # noqa: PLC0415 - see the top
        from minicluster.render.model import MiniClusterModel  # noqa: PLC0415

        def check_new_keys(cluster: MiniClusterModel) -> None:
            from minicluster.release import caller  # noqa: PLC0415 - few streams need keys

            caller.check_new_keys(cluster)

        data = streams.read(sys.stdin.buffer)
        if stream.INNER in os.environ:
            from minicluster.release import adopt  # noqa: PLC0415 - see the top

            streams.write(b"".join(adopt.cover(data)))
            os._exit(0)
        if stream.may_have_others(data) or not data.strip():
            from minicluster.release import adopt, caller  # noqa: PLC0415 - most streams have none

            outer = caller.find()
            data = adopt.adopt(data, outer, outer.say) if data.strip() or not outer.hands_all_over else NOTHING_RENDERED
        streams.write(postrender.render(data, seed=None, allow_random=check_new_keys))
    os._exit(0)  # all is written; this saves the 10 ms in which Python frees its objects


def run(arguments: Sequence[str]) -> None:
    """Run a command line and exit."""
    with front_door():
        import click  # noqa: PLC0415 - costs Helm's users 30 ms

        from minicluster.commands import group  # noqa: PLC0415

        try:
            code = group.main(arguments, prog_name=streams.program(), standalone_mode=False)
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            code = error.exit_code
        except click.UsageError as error:
            where = error.ctx.command_path if error.ctx else streams.program()
            raise UsageError(f"{error.format_message().rstrip('.?')}; see `{where} --help`") from None
        except click.ClickException as error:
            raise MiniClusterError(error.format_message()) from None
    sys.exit(code or 0)


def _say(text: str) -> None:
    streams.say(failure(text))


def _say_above(text: str) -> None:
    """Tell an error from within another plugin, which may be a chain of Helm 4, or helm diff, which runs any Helm."""
    from minicluster.release import caller  # noqa: PLC0415 - see the top

    caller.find().say(failure(text))


@contextmanager
def front_door(tell: Callable[[str], int | None] = _say) -> Iterator[None]:
    """Run what is inside; an error ends the process with one line and its exit code: 2 for wrong usage, most often 1.

    ``tell`` shows the line. A number that it returns is the exit code instead.
    """
    try:
        yield
        sys.stdout.flush()
    except SystemExit:
        raise
    except BaseException as error:
        error = Interrupted("interrupted") if isinstance(error, KeyboardInterrupt) else error
        code = error.code if isinstance(error, MiniClusterError) else 1
        told = tell(message(error))
        streams.discard_unwritten()
        sys.exit(code if told is None else told)


def message(error: BaseException) -> str:
    """Return an error in one line."""
    match error:
        case MiniClusterError():
            return str(error)
        case RecursionError():
            return "the input is nested too deeply"
        case MemoryError():
            return "there is not enough memory for this input"
        case OSError():
            text = error.strerror or type(error).__name__
            return " ".join(f"{error.filename}: {text}".split()) if error.filename else text
    # without the error's own text, which may quote a certificate
    return f"{type(error).__name__} at {_origin(error)}, a bug in minicluster: report it with your input"


def _origin(error: BaseException) -> str:
    """Return the file and line of this package that an error came from."""
    place, trace = "an unknown line", error.__traceback__
    while trace:
        path = Path(trace.tb_frame.f_code.co_filename)
        if path.is_relative_to(Path(__file__).parent) and path.name != Path(__file__).name:
            place = f"{path.name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


def tell_helm(text: str) -> int:
    """Print a manifest that makes Helm 4 fail with our message, and return the exit code for that.

    Helm 4 throws a plugin's standard error away, but names the file of a manifest that it can't parse. This
    manifest's name is a list, and its file name is the message, on a line of its own.
    """
    with suppress(OutputError):
        streams.write(error_document(text))
        return 0
    return 1


def error_document(text: str) -> bytes:
    """Return the manifest that Helm 4 can't parse. Helm adds words of its own, so the message marks its end."""
    annotations = {"postrenderer.helm.sh/postrender-filename": f"\nminicluster: {text}{END}"}
    document = {
        "apiVersion": "v1",
        "kind": "Error",
        "metadata": {"name": ["error"], "annotations": annotations},
    }
    # no escapes: the message has none but printable characters, and YAML can't read JSON's surrogate pairs
    return json.dumps(document, ensure_ascii=False).encode() + b"\n"


#: Directive by the kind of click's candidates; for other kinds the shell offers no file names
DIRECTIVES = {"file": 0, "dir": 16}
NO_FILES_CODE = 4


def complete() -> None:
    """Print candidates for the last argument, which comes after the others, and exit."""
    streams.open_closed()
    with front_door():
        streams.write(completions(sys.argv[1:]).encode())


def completions(words: Sequence[str]) -> str:
    """Return a line for each candidate, with its help after a tab, and the directive's line."""
    from click.shell_completion import ShellComplete  # noqa: PLC0415 - see cli

    from minicluster.commands import group  # noqa: PLC0415

    *before, begin = words or [""]
    completed = ShellComplete(group, {}, "kubectl minicluster", COMPLETE).get_completions(before, begin)
    plain = [f"{item.value}\t{one_line(item.help or '')}".rstrip() for item in completed if item.type == "plain"]
    directive = next((DIRECTIVES[item.type] for item in completed if item.type in DIRECTIVES), NO_FILES_CODE)
    return "".join(f"{line}\n" for line in (*plain, f":{directive}"))
