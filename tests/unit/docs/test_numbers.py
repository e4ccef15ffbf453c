"""The numbers in the documentation match the code."""

import re

import pytest
from minicluster.burst import follower
from minicluster.kube.names import MOST_CORES, NAME_CHARACTERS
from minicluster.render import broker, model, postrender
from minicluster.render.constants import BROKER_PORT, default_values
from minicluster.render.load import load
from minicluster.render.refusals.sizes import MOST_PODS
from minicluster.sdk import session
from minicluster.waiting import ready
from support import CHART, PACKAGE, ROOT

FILES = [
    *ROOT.glob("*.md"),
    *ROOT.glob("docs/**/*.md"),
    *ROOT.glob("values-examples/*.yaml"),
    CHART / "values.yaml",
]
#: Each text on one line, without the marks of its comments.
TEXTS = {
    str(file.relative_to(ROOT)): " ".join(re.sub("^ *#", "", file.read_text(), flags=re.MULTILINE).split())
    for file in FILES
}
WORDS = {3: "three", 300: "five minutes", 600: "ten minutes", 900: "15 minutes"}


def constant(file, name):
    """Return a number that a program of the pods sets."""
    (path,) = (PACKAGE / "pod").rglob(file)
    (found,) = re.findall(rf"^{name} ?= ?([\d.]+)", path.read_text(), re.MULTILINE)
    return int(float(found))


def grace(seconds):
    """Return the parts of a grace period: jobs go on, jobs are ended, the broker ends."""
    return model.grace(load({"metadata": {"name": "a"}, "spec": {"pod": {"terminationGracePeriodSeconds": seconds}}}))


KILL, ENDS, DUMP = model.KILL_SECONDS, model.END_SECONDS, default_values()["archive"]["dumpSeconds"]
WAIT, RETRY, WATCH = (
    constant("container.sh", "WAIT_SECONDS"),
    constant("entrypoint.sh", "RETRY_CODE"),
    constant("recovery.py", "SCHEDULER_SECONDS"),
)
#: A phrase of the documentation, and the number that it must have.
SAID = [
    # a pod that is told to stop
    (r"GracePeriodSeconds` minus (\d+) s", KILL + ENDS),
    (r"within all but (\d+) of them", KILL + ENDS),
    (r"if that is longer: (\d+) s of the default 30 s", grace(30)[0]),
    (r"(\d+) s and \d+ s of the default 30 s", KILL),
    (r"\d+ s and (\d+) s of the default 30 s", ENDS),
    (r"\| 10 \| (\d+) s \|", grace(10)[0]),
    (r"\| 30 \(default\) \| (\d+) s \|", grace(30)[0]),
    (r"\| 600 \| (\d+) s \|", grace(600)[0]),
    (r"for up to (\d+) of these seconds", grace(300)[0]),
    (r"archive\), (\d+) s by default", DUMP),
    (r"last (\d+) s of the grace period", KILL + DUMP),
    (r"ending the remaining jobs \((\d+) s\)", KILL),
    (r"so jobs may go on for (\d+) s", 30 - KILL - DUMP),
    (r"step 4 has (\w+) times as long", WORDS[constant("leave.py", "SLOWNESS_FACTOR")]),
    (r"told to stop exits with (\d\d+)", RETRY),
    (r"The exit code is always (\d+)", RETRY),
    # what is waited for
    (r"of its pod answers, at most (\d+) s", WAIT),
    (r"no broker within (\d+) s", WAIT),
    (r"detects this within (\d+) s of its start", WATCH),
    (r"watches the scheduler for (\d+) s", WATCH),
    (r"After (\d+) s it restarts the scheduler", constant("recovery.py", "IDLE_SECONDS, JOB_TRIES")),
    (r"pods have been gated for (\d+) s", constant("placement.py", "ADMISSION_SECONDS")),
    (r"tries more again after (\w+ \w+)", WORDS[constant("placement.py", "QUOTA_SECONDS")]),
    (r"left alone for (\d+) s", int(follower.REST_SECONDS)),
    (r"twice as long each time, up to (\d+) min", int(follower.MOST_REST_SECONDS / 60)),
    (r"is waited for, (\w+ \w+) at most", WORDS[ready.QUORUM_SECONDS]),
    (r"wait up to (\w+ \w+) for the lead", WORDS[ready.QUORUM_SECONDS]),
    (r"After (\w+ \w+) without an answer the futures raise", WORDS[session.OUTAGE_SECONDS]),
    # sizes and limits
    (r"[Bb]rokers (?:use|listen on its port) (\d+)", BROKER_PORT),
    (r"up to (\d+) children of each", broker.FANOUT_BROKERS),
    (r"At most ([\d,]+), which is Kubernetes' limit", f"{MOST_PODS:,}"),
    (r"burst of more than ([\d,]+) hosts", f"{MOST_PODS:,}"),
    (r"more than (\d+) cores or GPUs of a node", MOST_CORES),
    (r"or of the services \((\d+) characters", NAME_CHARACTERS),
    (r"more than (\d+) characters with `flux.bursting.expose", NAME_CHARACTERS - len("-lead")),
    (r", or (\d+) with `flux.bursting.follow", NAME_CHARACTERS - len("-follow")),
    (r"fit into a ConfigMap \((\d+) MiB in all", postrender.DATA_BYTES >> 20),
]


@pytest.mark.parametrize(("phrase", "number"), SAID, ids=[phrase for phrase, _ in SAID])
def test_numbers_in_the_documentation_match_the_code(phrase, number):
    found = {(file, said) for file, text in TEXTS.items() for said in re.findall(phrase, text)}
    assert found, "no page says this: adapt the phrase"
    assert found == {(file, str(number)) for file, _ in found}
