"""The broker of the stand-in for flux (flux_stand_in.sh): opens a socket, runs the initial program, dumps at the end.

It exits 0 when told to stop. The first argument is the folder of a pod: `broker` in it is the process id of the last
broker, `dump` what each dumps at its end. Hundreds of these start, so it imports as little as it can.
"""
# ruff: noqa: PTH108, PTH110, PTH123

import _signal
import _socket
import os
import sys
from types import FrameType

#: What the broker of a view adds to PYTHONPATH; jobs must not see it
VIEW_PYTHONPATH = "/view/python"
HERE = sys.argv[1]


def start(words: list[str]) -> int:
    attributes = dict(word[4:].split("=", 1) for word in words if word.startswith("-o-S"))
    program = words[next((i for i, word in enumerate(words) if not word.startswith("-")), len(words)) :]
    path = attributes["local-uri"].removeprefix("local://")
    listener = _socket.socket(_socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    with open(f"{HERE}/broker", "w") as file:
        file.write(str(os.getpid()))
    broker = {"FLUX_URI": attributes["local-uri"], "PYTHONPATH": VIEW_PYTHONPATH}
    argv = program or ["sleep", "600"]
    child = os.posix_spawnp(argv[0], argv, {**os.environ, **broker}, setsigdef=[_signal.SIGPIPE, _signal.SIGXFSZ])
    told: list[int] = []

    def stop(number: int, _: FrameType | None) -> None:
        told.append(number)
        # Flux sends SIGHUP to the initial program
        os.kill(child, _signal.SIGHUP if program else _signal.SIGTERM)

    _signal.signal(_signal.SIGTERM, stop)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    listener.close()
    if os.path.exists(path):
        os.unlink(path)
    dump = f"{HERE}/dump"
    if "content.dump" in attributes and os.path.exists(dump):
        with open(dump, "rb") as old, open(attributes["content.dump"], "wb") as new:
            new.write(old.read())
    if "broker.rc3_path" in attributes:
        os.spawnlp(os.P_WAIT, "sh", "sh", "-c", attributes["broker.rc3_path"])
    if told:
        return 0
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(start(sys.argv[2:]))
