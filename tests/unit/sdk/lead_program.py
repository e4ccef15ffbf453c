"""What runs on the lead beside a program that uses the SDK: jobs are over at once, but `wait` waits for a file.

Each request is noted in a file.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

FREE, ASKED = Path(os.environ["FREE"]), Path(os.environ["ASKED"])
CANCELLED: set[str] = set()


def say(**reply: Any) -> None:
    """Reply."""
    sys.stdout.write(json.dumps(reply) + "\n")
    sys.stdout.flush()


def end(key: str, words: list[str]) -> None:
    """Run a job to its end."""
    while words == ["wait"] and not FREE.exists() and key not in CANCELLED:
        time.sleep(0.02)
    say(
        key=key, end={"status": 0, "exception": None, "output": [["stdout", " ".join(words[1:]) + "\n"]], "usage": None}
    )


def main() -> None:
    """Answer until standard input ends."""
    sys.stdin.readline()
    say(ready="0.88.0")
    for number, line in enumerate(sys.stdin):
        asked = json.loads(line)
        if "client" in asked:
            continue
        key = asked.pop("key")
        with ASKED.open("a") as file:
            file.write(json.dumps(asked) + "\n")
        if "submit" in asked:
            say(key=key, id=f"f{os.getpid()}-{number}")
            threading.Thread(target=end, args=(key, asked["submit"]["command"])).start()
        elif "cancel" in asked:
            CANCELLED.add(key)
            say(key=key, cancelled=True)
        elif "list" in asked:
            say(key=key, jobs=[])
    os._exit(0)


main()
