"""A stand-in for flux without brokers, which pods.py puts into a pod. It records each call, and then runs the script of
the test for this call, or does the simplest thing that Flux does.

In the folder above its own: `calls` has a line of JSON for each call; `plays` has the test's shell texts, each named
after the first words of a call; `dump` is what a broker dumps at its end; `broker` is the process id of the last one.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from types import FrameType

HERE = Path(__file__).parent.parent
#: What the broker of a view adds to PYTHONPATH; jobs must not see it
VIEW_PYTHONPATH = "/view/python"
#: Options of `flux submit` whose value is the next word
VALUES = ("-N", "-n", "-o", "-c")


def note(words: list[str]) -> None:
    line = json.dumps({"words": words, "env": dict(os.environ)}) + "\n"
    file = os.open(HERE / "calls", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, line.encode())
    os.close(file)


def play(words: list[str]) -> Path | None:
    """Return the test's text for a call, the one whose name has the most words. Of a path the last part counts."""
    names = [Path(word).name or word for word in words]
    found = (HERE / "plays" / " ".join(names[:count]) for count in range(min(len(names), 5), 0, -1))
    return next((path for path in found if path.exists()), None)


def start(words: list[str]) -> int:
    """Act as a broker: open a socket, run the initial program, dump at the end. Exit 0 when told to stop."""
    attributes = dict(word[4:].split("=", 1) for word in words if word.startswith("-o-S"))
    program = words[next((i for i, word in enumerate(words) if not word.startswith("-")), len(words)) :]
    path = attributes["local-uri"].removeprefix("local://")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        (HERE / "broker").write_text(str(os.getpid()))
        broker = {"FLUX_URI": attributes["local-uri"], "PYTHONPATH": VIEW_PYTHONPATH}
        child = subprocess.Popen(program or ["sleep", "600"], env=os.environ | broker)
        told: list[int] = []

        def stop(number: int, _: FrameType | None) -> None:
            told.append(number)
            # Flux sends SIGHUP to the initial program
            child.send_signal(signal.SIGHUP if program else signal.SIGTERM)

        signal.signal(signal.SIGTERM, stop)
        code = child.wait()
    Path(path).unlink(missing_ok=True)
    if "content.dump" in attributes and (HERE / "dump").exists():
        shutil.copy(HERE / "dump", attributes["content.dump"])
    if "broker.rc3_path" in attributes:
        subprocess.run(["sh", "-c", attributes["broker.rc3_path"]], check=False)
    if told:
        return 0
    return code if code >= 0 else 128 - code


def submit(words: list[str]) -> int:
    """Act as `flux run` and `flux submit --watch`: run the command in the environment that the options describe."""
    env = dict(os.environ)
    # minicluster.lua does this
    for name in [name for name in env if name.startswith("MINICLUSTER_PYTHON") and name != "MINICLUSTER_PYTHONPATH"]:
        env[name.removeprefix("MINICLUSTER_")] = env.pop(name)
    while words and words[0].startswith("-"):
        option = words.pop(0)
        if option in VALUES:
            words.pop(0)
        elif option.startswith("--env="):
            name, has_value, value = option.removeprefix("--env=").partition("=")
            if has_value:
                env[name] = os.path.expandvars(value)
            else:
                env.pop(name.removeprefix("-"), None)
    code = subprocess.run(words, env=env, check=False).returncode
    return code if code >= 0 else 128 - code


def main(words: list[str]) -> int:
    note(words)
    text = play(words)
    if text:
        os.execv("/bin/sh", ["sh", str(text), *words])
    verb, *rest = words
    if verb == "--version":
        print("commands:    \t\t0.88.0\nlibflux-core:\t0.88.0")
    elif verb == "start":
        return start(rest)
    elif verb in ("run", "submit"):
        return submit(rest)
    elif verb == "config":
        print("true")
    elif verb == "R":
        print('{"version": 1, "execution": {"R_lite": [{"rank": "0", "children": {"core": "0-3"}}]}}')
    elif verb == "python" and (rest[0] == "-m" or Path(rest[0]).name == "remains.py"):
        os.execv(sys.executable, [sys.executable, *rest])
    elif verb == "getattr":
        with socket.socket(socket.AF_UNIX) as client:
            return int(client.connect_ex(os.environ["FLUX_URI"].removeprefix("local://")) != 0)
    elif verb == "event" and rest[0] == "sub":
        return 1  # the instance ended
    elif verb not in ("python", "event", "exec", "dmesg", "overlay", "resource", "uptime"):
        print(f"the stand-in for flux does not know {' '.join(words)}", file=sys.stderr)
        return 99
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
