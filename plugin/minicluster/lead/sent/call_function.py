"""call_function.py BYTES: calls the function that a client of the SDK sends with a job, and keeps what it returns.

Runs in a job with the Python of its node (sdk/job_queue.py), which has the version of the client's; the files of the
job are this one, the ``function``, a pickle of it and its arguments, and mostly ``cloudpickle.zip``. What it returned,
or raised, goes to the job's own part of the KVS, as long as its pickle has no more than BYTES. Needs nothing of Flux.
"""

from __future__ import annotations

import base64
import os
import pickle
import subprocess
import sys
import traceback
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

#: Where the result is in the job's namespace
RESULT = "minicluster.result"
#: What helps when a module is missing
MODULE_HINT = (
    "a module of yours: upload=FOLDER brings it to the nodes; a package: have it in the image, or in packages="
)


def dumped(answer: Any) -> bytes:
    """Return the pickle of an answer, also of what only the client's program has."""
    try:
        return pickle.dumps(answer)
    except Exception:
        import cloudpickle

        return bytes(cloudpickle.dumps(answer))


def failure(error: BaseException) -> bytes:
    """Return the pickle of an error and its traceback; where it can't be made anew, of that alone."""
    if isinstance(error, ModuleNotFoundError) and hasattr(error, "add_note"):
        error.add_note(MODULE_HINT)
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    sys.stderr.write(text)
    with suppress(Exception):
        data = dumped((error, text))
        pickle.loads(data)  # noqa: S301 - our own
        return data
    return pickle.dumps((None, text))


def call(work: bytes, most: int) -> tuple[bytes, int]:
    """Call the function; return the pickle of what came, and an exit code."""
    try:
        function, arguments, keywords = pickle.loads(zlib.decompress(work))  # noqa: S301 - the client's own
        value = function(*arguments, **keywords)
    except Exception as error:
        # without our own line
        return failure(error.with_traceback(error.__traceback__ and error.__traceback__.tb_next)), 1
    try:
        data = dumped((value, ""))
    except Exception as error:
        return failure(TypeError(f"what the function returned can't be pickled: {error}")), 1
    if len(data) > most:
        way = "write it to a file, and return its name"
        return failure(ValueError(f"what the function returned has {len(data)} bytes, more than {most}: {way}")), 1
    return data, 0


def main(most: int) -> int:
    """Call it; only the first task of a job keeps the result."""
    environment, folder = {**os.environ}, Path(sys.path[0])
    # as `python -c` has it, so that a folder that goes along is found
    sys.path[0] = ""
    sys.path.insert(1, str(folder / "cloudpickle.zip"))
    data, code = call((folder / "function").read_bytes(), most)
    sys.stdout.flush()
    if environment.get("FLUX_TASK_RANK", "0") == "0":
        text = base64.b64encode(zlib.compress(data, 1))
        words = ["flux", "kvs", "put", "--raw", f"{RESULT}=-"]
        subprocess.run(words, input=text, env=environment, check=True)  # noqa: S603 - words, no shell
    return code


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
