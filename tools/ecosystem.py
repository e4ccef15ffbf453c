"""Converts and renders the MiniClusters and MPIJobs of public repositories, and compares a commit with another.

python -m tools.ecosystem                 says how many are converted, and why others are refused
python -m tools.ecosystem --base COMMIT   says which files have another outcome than with that commit
python -m tools.ecosystem --fetch         gets the files that the index lacks, and says how many can't be had
python -m tools.ecosystem --list CLONES   writes the list anew, of clones that are named OWNER+NAME, and fills the index

ecosystem.csv says where the files are; no copy of them is here. The variable MINICLUSTER_ECOSYSTEM names an index: a
folder with the files, each under its sha256. tests/cluster/test_api.py gives what they become to an API server.
"""

import argparse
import csv
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.parse
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import urllib3
from minicluster.convert import convert
from minicluster.errors import MiniClusterError
from minicluster.release import helm
from minicluster.render import postrender

from tools.clients import BIN, ROOT, ClusterError, output, run, run_program

LIST = ROOT / "tools" / "ecosystem.csv"
VARIABLE = "MINICLUSTER_ECOSYSTEM"
#: How git finds them, and which files it is asked for
KINDS = r"^kind: *(MiniCluster|MPIJob) *$"
NAMES = ("*.yaml", "*.yml")
SEED = b"a certificate that is no secret"
#: A ConfigMap with the programs: they are the same for all, and change more often than objects do
PROGRAMS = re.compile(r"^kind: ConfigMap\nmetadata:\n  name: \"?\S*-programs", re.MULTILINE)
#: Where each file is, and how much of one is read, for how long
SOURCE = "https://raw.githubusercontent.com"
FILE_BYTES, FILE_SECONDS = 1 << 20, 20
CONVERTED, REFUSED, BROKEN = "converted", "refused", "broken"


class PublicFile(NamedTuple):
    """A file of a public repository."""

    kind: str
    repository: str
    commit: str
    path: str
    sha256: str


class Outcome(NamedTuple):
    """What becomes of a file: refused by `convert`, or broken, which is a fault of ours."""

    what: str
    why: str = ""
    digest: str = ""  #: of the values and the objects

    def __str__(self) -> str:
        return f"{self.what}: {self.why}" if self.why else self.what


def listed(path: Path = LIST) -> list[PublicFile]:
    """Return the list."""
    with path.open(encoding="utf-8", newline="") as file:
        return [PublicFile(*row) for row in csv.reader(file)]


def index(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder with the files. Raises ClusterError where there is none."""
    folder = Path(environment.get(VARIABLE) or "nowhere")
    if not folder.is_dir():
        raise ClusterError(f"{VARIABLE} names no folder with the files of {LIST.name}, each under its sha256")
    return folder


def fetch(files: Iterable[PublicFile], folder: Path, source: str = SOURCE) -> list[str]:
    """Get the files that the index lacks; return why others can't be had. All are tried once."""
    lacking = [file for file in files if not (folder / file.sha256).is_file()]
    with urllib3.PoolManager(maxsize=4) as pool, ThreadPoolExecutor(4) as workers:
        return [why for why in workers.map(lambda file: _get(pool, source, file, folder), lacking) if why]


def _get(pool: urllib3.PoolManager, source: str, file: PublicFile, folder: Path) -> str:
    """Get a file into the index; return why it can't be had, or ""."""
    where = f"{file.repository}/{file.commit}/{urllib.parse.quote(file.path)}"
    try:
        with pool.request("GET", f"{source}/{where}", timeout=FILE_SECONDS, retries=1, preload_content=False) as answer:
            data = answer.read(FILE_BYTES)
    except urllib3.exceptions.HTTPError as error:
        return f"{where}: {type(error).__name__}"
    if answer.status != 200 or hashlib.sha256(data).hexdigest() != file.sha256:
        return f"{where}: {'other content' if answer.status == 200 else f'HTTP {answer.status}'}"
    (folder / file.sha256).write_bytes(data)
    return ""


def outcome(data: bytes) -> Outcome:
    """Convert a file, and render what it becomes by both Helms."""
    try:
        values, _ = convert(data)
    except MiniClusterError as error:
        return Outcome(REFUSED, str(error))
    except Exception as error:  # a fault, which is told
        return Outcome(BROKEN, f"convert: {type(error).__name__}: {error}")
    digest = hashlib.sha256()
    for one in values:
        for program in ("helm3", "helm"):
            try:
                objects = rendered(program, one.release, one.namespace or "default", one.text)
            except (MiniClusterError, ClusterError) as error:
                return Outcome(BROKEN, f"{program}: {' '.join(str(error).split())}")
        digest.update("\n".join([one.text, *one.warnings, *objects]).encode())
    return Outcome(CONVERTED, digest=digest.hexdigest())


def objects_of(data: bytes, program: str, namespace: str, options: Sequence[str]) -> list[str]:
    """Return the objects that a file becomes, by one Helm; none where it is refused. Raises as `rendered` does."""
    try:
        values, _ = convert(data)
    except MiniClusterError:
        return []
    return [text for one in values for text in rendered(program, one.release, namespace, one.text, *options)]


def rendered(program: str, release: str, namespace: str, values: str, *options: str) -> list[str]:
    """Return the objects but the programs, each as a text. Raises MiniClusterError, ClusterError."""
    words = (BIN / program, "template", release, helm.CHART, "--namespace", namespace, "--values", "-", *options)
    # Helm 3 complains of a plugin of Helm 4
    out = output(*words, stdin=values, env={**os.environ, "HELM_PLUGINS": ""})
    stream = postrender.render(out.encode(), SEED, allow_random=False).decode()
    return [text for text in stream.split("\n---\n") if not PROGRAMS.search(text)]


def outcomes(files: Iterable[PublicFile], folder: Path) -> dict[str, Outcome]:
    """Return the outcome of each file that the index has, by its sha256."""
    known = [file.sha256 for file in files if (folder / file.sha256).is_file()]
    with ProcessPoolExecutor() as workers:
        return dict(zip(known, workers.map(outcome, ((folder / one).read_bytes() for one in known)), strict=True))


def reason(why: str) -> str:
    """Return a reason without what is a file's own."""
    text = re.sub(r"^(MPIJob|MiniCluster) \S+ ", "", why)
    text = re.sub(r"'[^']*'", "'…'", re.sub(r"\d+", "N", text))
    return re.split(r"[:;,] ", text)[0][:100]


def summary(files: Iterable[PublicFile], found: Mapping[str, Outcome]) -> Iterator[str]:
    """Yield the lines of a table: how many have which outcome, for each kind, and why."""
    yield "| kind | outcome | files | why |"
    yield "|---|---|---|---|"
    counts = Counter(
        (file.kind, found[file.sha256].what, reason(found[file.sha256].why)) for file in files if file.sha256 in found
    )
    for (kind, what, why), count in sorted(counts.items(), key=lambda item: (item[0][0], item[0][1], -item[1])):
        yield f"| {kind} | {what} | {count} | {why.replace('|', '/')} |"


def differences(files: Iterable[PublicFile], base: Mapping[str, Outcome], head: Mapping[str, Outcome]) -> Iterator[str]:
    """Yield the lines of a table of the files whose outcomes differ; none where all are the same."""
    rows = []
    for file in files:
        before, now = base.get(file.sha256), head.get(file.sha256)
        if before and now and before != now:
            after = f"{now.what} to other values or objects" if str(before) == str(now) else str(now)
            rows.append(f"| {file.repository} | {file.path} | {before} | {after} |")
    if rows:
        yield from ("| repository | file | base | head |", "|---|---|---|---|", *sorted(rows))


def of_commit(commit: str, folder: Path) -> dict[str, Outcome]:
    """Return the outcomes with the package and the chart of a commit. Raises ProcessError for none that git knows."""
    with tempfile.TemporaryDirectory() as made:
        tree = Path(made, "base")
        output("git", "-C", ROOT, "worktree", "add", "--detach", tree, commit)
        try:
            env = {**os.environ, "PYTHONPATH": f"{tree / 'plugin'}{os.pathsep}{ROOT}", VARIABLE: str(folder)}
            words = (sys.executable, Path(__file__).resolve(), "--json")
            done = json.loads(output(*words, env=env, seconds=3600))
        finally:
            run("git", "-C", ROOT, "worktree", "remove", "--force", tree)
    return {sha256: Outcome(*one) for sha256, one in done.items()}


def found_in(clone: Path, folder: Path) -> Iterator[PublicFile]:
    """Yield the files of a clone, and copy each into the index."""

    def git(*words: str) -> bytes:
        return subprocess.run(["git", "-C", str(clone), *words], capture_output=True, check=False).stdout

    commit = git("rev-parse", "HEAD").decode().strip()
    for line in git("grep", "-lIE", KINDS, "HEAD", "--", *NAMES).decode().splitlines():
        path = line.partition(":")[2]
        data = git("show", f"HEAD:{path}")
        sha256 = hashlib.sha256(data).hexdigest()
        (folder / sha256).write_bytes(data)
        first = re.search(KINDS, data.decode(errors="replace"), re.MULTILINE)
        yield PublicFile(first[1] if first else "", clone.name.replace("+", "/"), commit, path, sha256)


def write_list(clones: Path, folder: Path) -> None:
    """Write the list of the files in clones, each content once."""
    found = [file for clone in sorted(clones.iterdir()) for file in found_in(clone, folder)]
    once = {file.sha256: file for file in reversed(found)}
    with LIST.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(sorted(once.values()))


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", metavar="COMMIT")
    parser.add_argument("--fetch", action="store_true")
    parser.add_argument("--list", type=Path, metavar="CLONES")
    parser.add_argument("--json", action="store_true", help="print the outcome of each file")
    args = parser.parse_args()
    folder = index()
    if args.list:
        write_list(args.list, folder)
        return
    files = listed()
    if args.fetch:
        missing = fetch(files, folder)
        print(*missing, f"{len(files) - len(missing)} of {len(files)} files are in {folder}", sep="\n")
        if len(missing) > len(files) / 10:
            raise ClusterError("too many of the files can't be had")
        return
    head = outcomes(files, folder)
    if args.json:
        print(json.dumps(head))
    elif args.base:
        rows = list(differences(files, of_commit(args.base, folder), head))
        print("\n".join(rows) or f"all {len(head)} files have the outcome that they have with {args.base}")
    else:
        print("\n".join(summary(files, head)))
        print(f"\n{len(head)} of {len(files)} files are in {folder}")


if __name__ == "__main__":
    run_program(main)
