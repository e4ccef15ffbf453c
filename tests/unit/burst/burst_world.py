"""A stand-in for helm and kubectl, which keeps a small world of a root and its bursts in a file.

Its first word is the path of the program that it stands for. The world has the sizes of Jobs, the conditions of those
that ended, drains by rank, what the queue needs of each burst, the ranks with jobs, the jobs that start at the next
drain, whether the root is suspended, the bursts' Secrets, Helm's status of releases that are not deployed, and the root
that releases name, what fails and what was done.
"""

import fcntl
import json
import re
import select
import sys
from pathlib import Path
from typing import Any, NoReturn

FIRST = {"": 0, "b0": 2, "b1": 6}
#: of a root with the groups spot, of which it adds hosts first, and gpu
WITH_GROUPS = {"": 0, "gpu": 2, "spot": 3, "b0": 5, "b1": 9}
CHANGES = r" (apply|delete|upgrade|uninstall|drain --update|undrain) "
#: Parts of a command line that are left out of what is noted
NOISE = r"exec \S+ -- \S+/|upgrade --install (b.) .*| (--field-manager|--cascade).*"
HERE = Path()  #: the folder of the program


def read() -> dict[str, Any]:
    """Return the world."""
    found: dict[str, Any] = json.loads((HERE / "world").read_text())
    return found


def save(world: dict[str, Any]) -> None:
    """Change the world; the caller has its lock."""
    (HERE / "new").write_text(json.dumps(world))
    (HERE / "new").rename(HERE / "world")


def end(answer: Any = "", code: int = 0) -> NoReturn:
    """Print an answer, or an error."""
    text = answer if isinstance(answer, str) else json.dumps(answer)
    print(text, end="", file=sys.stderr if code else sys.stdout)
    sys.exit(code)


def ranks(text: str) -> list[int]:
    """Return the numbers of an idset."""
    parts = (part.partition("-") for part in text.split(",") if part)
    return [number for first, _, last in parts for number in range(int(first), int(last or first) + 1)]


def group(world: dict[str, Any], name: str, first: int) -> dict[str, Any]:
    """Return what the lead's program reports about a group of hosts."""
    size = world["sizes"].get(name, 0)
    joined = [] if name and not world["joins"] else range(size)
    held = max([0, *(rank - first + 1 for rank in world["busy"] if first <= rank < first + size)])
    need = max(world["need"].get(name, 0), held)
    online = ",".join(map(str, joined))
    return {"need": need, "held": held, "age": 60.0 if need > size else 0.0, "online": online}


def answer_offers(lead: str) -> None:
    """Do as the program on the lead does."""
    source = sys.stdin.buffer.raw  # type: ignore[attr-defined]  # a FileIO
    source.readline()
    print('{"ready": "0.88.0"}', flush=True)
    offer: dict[str, Any] = {}
    while True:
        if select.select([source], [], [], 0.02)[0]:
            text = source.readline()
            if not text:
                end()
            offer = json.loads(text)
            found = [*offer["root"], *offer["bursts"]]
            firsts = WITH_GROUPS if len(offer["root"]) > 1 else FIRST
            names = [name for each in found for name, first in firsts.items() if first == each["first"]]
            sizes = {name: [each["size"], each["most"]] for name, each in zip(names, found, strict=True)}
            with (HERE / "offers").open("a") as file:
                file.write(json.dumps(sizes) + "\n")
        world = read()
        if world["lead"] != lead:
            end("the pod is gone", 1)
        if offer:
            groups = [group(world, name, firsts[name]) for name in names]
            print(json.dumps({"number": offer["number"], "waiting": 2, "groups": groups}), flush=True)


def lead_pods(name: str) -> dict[str, Any]:
    """Return the list of the lead's pods."""
    runner = {"name": "flux", "env": [{"name": "MINICLUSTER_HOME", "value": "/mnt/flux"}]}
    status = {"name": "flux", "ready": True, "state": {"running": {}}}
    metadata = {
        "name": name,
        "namespace": "here",
        "uid": name,
        "creationTimestamp": "2030-01-01T11:00:00Z",
        "annotations": {"kubectl.kubernetes.io/default-container": "flux"},
        "labels": {"batch.kubernetes.io/job-completion-index": "0"},
    }
    ready = {"phase": "Running", "hostIP": "10.0.0.1", "conditions": [{"type": "Ready", "status": "True"}]}
    pod = {"metadata": metadata, "spec": {"nodeName": "node", "containers": [runner]}}
    return {"items": [{**pod, "status": {**ready, "containerStatuses": [status]}}] if name else []}


def change(world: dict[str, Any], words: list[str], line: str) -> None:
    """Apply a command that changes the world."""
    if line.startswith("helm upgrade"):
        world["sizes"][words[3]] = json.loads(sys.stdin.read())["size"]
        world["done"][-1] += f" {world['sizes'][words[3]]}"
    elif line.startswith("helm uninstall"):
        for of in ("sizes", "ends", "releases"):
            world[of].pop(words[2], None)
    elif line.startswith("kubectl apply"):
        world["secrets"].append(json.loads(sys.stdin.read())["metadata"]["name"])
    elif line.startswith("kubectl delete secret"):
        world["secrets"] = [name for name in world["secrets"] if name != words[3]]
    elif "resource drain --update" in line:
        reason = line.partition("minicluster: ")[2]
        world["drains"].update({str(rank): reason for rank in ranks(words[words.index("--update") + 1])})
        world["busy"] += world["starts"]
        world["starts"] = []
    elif "resource undrain" in line:
        for rank in ranks(words[-1]):
            del world["drains"][str(rank)]
    save(world)
    end()


def look(world: dict[str, Any], words: list[str], line: str) -> None:
    """Answer a command that changes nothing."""
    if line.startswith("kubectl get job "):
        if words[3] not in world["sizes"]:
            end()
        size = world["sizes"][words[3]]
        spec = {"completions": size, "parallelism": size, "template": {"spec": {"containers": []}}}
        spec["suspend"] = world["suspended"] and words[3] == "flux"
        with (HERE / "looks").open("a") as file:
            file.write(f"{words[3]}\n")
        status = {"conditions": world["ends"].get(words[3], [])}
        metadata = {
            "name": words[3],
            "namespace": "here",
            "creationTimestamp": "2030-01-01T11:00:00Z",
            "annotations": {"minicluster/immutable": json.dumps({"maxSize": "2"})},
        }
        end({"metadata": metadata, "spec": spec, "status": status})
    if line.startswith("kubectl get pods") and "job-name=flux" in line:
        end(lead_pods(world["lead"]))
    if "resource drain -n" in line:
        end("".join(f"{rank}|minicluster: {why}\n" for rank, why in world["drains"].items()))
    if "-s all,allocated" in line:
        end(f"all 0-99\nallocated {','.join(map(str, world['busy']))}\n")
    if line.startswith("kubectl config get-contexts"):
        end("here\ncloud\n")
    if line.startswith("helm version"):
        end("v4.3.1")
    if line.startswith("helm status "):
        status = world["releases"].get(words[2], "deployed" if words[2] in world["sizes"] else "")
        config = {"flux": {"bursting": {"leadBroker": {"name": world["root"]}}}}
        end({"info": {"status": status}, "config": config} if status else "Error: release: not found", not status)
    if line.startswith("kubectl get secret") and "-root-curve" in line:
        labels = {"app.kubernetes.io/part-of": "flux"}
        end({"metadata": {"labels": labels}} if words[3] in world["secrets"] else "")
    for pattern, answer in json.loads((HERE / "answers").read_text()).items():
        if re.search(pattern, line):
            end(answer[1], answer[0]) if isinstance(answer, list) else end(answer)


def main() -> None:
    """Answer as helm or kubectl."""
    global HERE  # noqa: PLW0603
    program, *given = sys.argv[1:]
    HERE = Path(program).parent
    place = [word for word in given if re.match("--(kube-)?(context|namespace)=", word)]
    words = [Path(program).name, *(word for word in given if word not in place)]
    line = " ".join(words)
    if "python" in words:
        answer_offers(words[2])
    with (HERE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        world, changes = read(), re.search(CHANGES, f"{line} ")
        if changes:
            world["done"].append(re.sub(NOISE, r"\1", line))
            save(world)
        for pattern, text in world["fails"].items():
            if re.search(pattern, " ".join([*place, line])):
                end(text, 1)
        if changes:
            change(world, words, line)
        look(world, words, line)
    end(f"nobody expected: {line}", 1)
