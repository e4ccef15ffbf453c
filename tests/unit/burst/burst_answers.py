"""A stand-in for helm and kubectl, which answers from a table in a file, and notes each command.

Its first word is the path of the program that it stands for.
"""

import json
import re
import sys
from pathlib import Path


def main() -> None:
    """Answer as helm or kubectl."""
    program, *given = sys.argv[1:]
    folder, name = Path(program).parent, Path(program).name
    line = " ".join([name, *(word for word in given if not re.match("--(kube-)?(context|namespace)=", word))])
    with (folder / "asked").open("a") as asked, (folder / "stdin").open("a") as stdin:
        print(json.dumps([name, *given]), file=asked)
        print(sys.stdin.read(), file=stdin)
    for pattern, answer in json.loads((folder / "answers").read_text()).items():
        if re.search(pattern, line):
            code, text = answer if isinstance(answer, list) else (0, answer)
            print(text if isinstance(text, str) else json.dumps(text), end="", file=sys.stderr if code else sys.stdout)
            sys.exit(code)
    sys.exit(f"nobody expected: {line}")
