"""What `minicluster support` prints: all that a bug report needs, and no secret."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from live_kubectl import Kubectl
from minicluster.commands.support import hidden_texts, public

PASSWORD = "hunter2hunter2"
KEY = "aZ3$kk(!pQ^wv<tP}Ju?2x[4Lr0)mN8sYb%eHc{d"
TOKEN = "eyJhbGciOiJI.eyJzdWIiOiIxMjM0.SflKxwRJSMeKKF2QT4"
CERTIFICATE = f'metadata\n    name = "a"\ncurve\n    public-key = "{KEY}"\n    secret-key = "{KEY[::-1]}"\n'
#: A secret in each field that may have one, and names that tell what runs
VALUES: dict[str, Any] = {
    "size": 2,
    "tasks": 4,
    "nameOverride": "mini",
    "containers": [
        {
            "image": "ghcr.io/org/app:1.0",
            "command": f"curl -u me:{PASSWORD} x",
            "environment": {"TOKEN": PASSWORD},
            "commands": {"pre": f"export A={PASSWORD}\necho b", "script": PASSWORD},
            "secrets": {"B": {"name": "a-secret", "key": "a-key"}},
            "lifeCycle": {"postStartExec": PASSWORD},
            "resources": {"limits": {"cpu": 2, "memory": "1Gi"}},
            "volumes": {"v": {"csiDriver": "d", "path": "/v", "csiDriverAttributes": {"password": PASSWORD}}},
        },
        {"name": "s", "image": "a", "command": ["run", f"--password={PASSWORD}"]},
    ],
    "services": [{"name": "t", "image": "a", "environment": {"C": PASSWORD}}],
    "flux": {
        "curveCert": CERTIFICATE,
        "environment": {"D": PASSWORD},
        "optionFlags": f"--env=A={PASSWORD}",
        "submitCommand": PASSWORD,
        "wrap": PASSWORD,
        "brokerConfig": PASSWORD,
        "container": {"image": "view:1"},
    },
    "jobAnnotations": {"a": PASSWORD},
    "pod": {
        "annotations": {"a": PASSWORD},
        "labels": {"a": "b"},
        "template": {"spec": {"containers": [{"name": "s", "env": [{"name": "E", "value": PASSWORD}]}]}},
        "tolerations": [{"key": PASSWORD}],
    },
    "unknown": {"field": PASSWORD},
}
NO = "(hidden)"
#: What strangers may see of them
SHOWN: dict[str, Any] = {
    "size": 2,
    "tasks": 4,
    "nameOverride": "mini",
    "containers": [
        {
            "image": "ghcr.io/org/app:1.0",
            "command": NO,
            "environment": {"TOKEN": NO},
            "commands": {"pre": NO, "script": NO},
            "secrets": {"B": {"name": "a-secret", "key": "a-key"}},
            "lifeCycle": {"postStartExec": NO},
            "resources": {"limits": {"cpu": 2, "memory": "1Gi"}},
            "volumes": {"v": {"csiDriver": NO, "path": "/v", "csiDriverAttributes": {"password": NO}}},
        },
        {"name": "s", "image": "a", "command": [NO, NO]},
    ],
    "services": [{"name": "t", "image": "a", "environment": {"C": NO}}],
    "flux": {
        "curveCert": NO,
        "environment": {"D": NO},
        "optionFlags": NO,
        "submitCommand": NO,
        "wrap": NO,
        "brokerConfig": NO,
        "container": {"image": "view:1"},
    },
    "jobAnnotations": {"a": NO},
    "pod": {
        "annotations": {"a": NO},
        "labels": {"a": "b"},
        "template": {"spec": {"containers": [{"name": NO, "env": [{"name": NO, "value": NO}]}]}},
        "tolerations": [{"key": NO}],
    },
    "unknown": {"field": NO},
}


def test_values_are_shown_without_the_texts_that_may_be_secret() -> None:
    assert public(VALUES) == SHOWN
    hidden = list(hidden_texts(VALUES, SHOWN))
    assert CERTIFICATE in hidden
    assert PASSWORD in hidden


HELM = """
case " $* " in
*" version "*) echo v4.3.1 ;;
*" get values "*) cat "${0%/*}/values" || exit 1 ;;
*" history "*) echo '[{"revision": 3, "status": "deployed", "chart": "minicluster-0.1.0"}]' ;;
esac
"""
VERSIONS = {"clientVersion": {"gitVersion": "v1.36.3"}, "serverVersion": {"gitVersion": "v1.36.1"}}
LOG = ["start", f"using {PASSWORD}", f"token {TOKEN}", "https://me:pw@host/x", f'    secret-key = "{KEY}"', *["x"] * 40]


@pytest.fixture
def kubectl(tmp_path: Path) -> Kubectl:
    made = Kubectl(tmp_path)
    (tmp_path / "home/config/run").mkdir(parents=True)
    (tmp_path / "home/config/run/broker.log").write_text("\n".join(LOG[1:]) + "\n")
    (tmp_path / "logs").write_text("".join(f"2030-01-01T12:00:00.5Z {line}\n" for line in LOG[1:]))
    made.has(values=VALUES, version=VERSIONS)
    made.tool("helm", HELM)
    return made


def parts_of(text: str) -> dict[str, str]:
    """Return the texts of a report by their titles."""
    found = re.findall(r"### (.+)\n\n`{6}\n((?:.*\n)*?)`{6}\n", text)
    return dict(found)


def test_a_report_has_all_parts_and_no_secret(kubectl: Kubectl) -> None:
    done = kubectl.run("support", "mini")
    assert (done.code, done.err) == (0, "")
    parts = parts_of(done.out)
    assert list(parts) == ["Values", "Versions", "Status", "Why", "Log of the lead", "Log of its broker"]
    head, _, values = parts["Values"].partition("\n")
    assert head == "# revision 3 of minicluster, deployed"
    assert yaml.safe_load(values) == SHOWN
    versions = parts["Versions"].splitlines()
    assert [line.split()[0] for line in versions] == ["minicluster", "Python", "Helm", "kubectl", "Kubernetes"]
    assert versions[2:] == ["Helm v4.3.1", "kubectl v1.36.3", "Kubernetes v1.36.1"]
    assert parts["Status"].startswith("MiniCluster  mini, namespace lab")
    shown = [f"using {NO}", f"token {NO}", f"https://{NO}@host/x", f'    secret-key = "{NO}"', *["x"] * 40]
    assert parts["Log of the lead"].splitlines() == shown[-40:]
    for secret in (PASSWORD, TOKEN, KEY, KEY[::-1], "me:pw"):
        assert secret not in done.out


def test_the_last_lines_are_without_secrets_too(kubectl: Kubectl, tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("".join(f"2030-01-01T12:00:00.5Z {line}\n" for line in LOG[:5]))
    (tmp_path / "home/config/run/broker.log").write_text("\n".join(LOG[:5]))
    parts = parts_of(kubectl.run("support", "mini").out)
    shown = ["start", f"using {NO}", f"token {NO}", f"https://{NO}@host/x", f'    secret-key = "{NO}"']
    assert parts["Log of the lead"].splitlines() == shown
    assert parts["Log of its broker"].splitlines() == shown


def test_without_the_values_there_are_no_logs_since_they_may_have_a_secret(kubectl: Kubectl, tmp_path: Path) -> None:
    (tmp_path / "values").unlink()
    done = kubectl.run("support", "mini")
    parts = parts_of(done.out)
    assert done.code == 0
    assert parts["Values"].startswith("can't be read: helm get values")
    for title in ("Log of the lead", "Log of its broker"):
        assert parts[title] == "can't be read: it may have secrets, which can't be hidden without the values\n"
    assert PASSWORD not in done.out


def test_a_cluster_that_is_not_there_is_said_in_each_part(kubectl: Kubectl) -> None:
    kubectl.has(job={}, pods={"items": []})
    done = kubectl.run("support", "mini")
    assert done.code == 0
    assert parts_of(done.out)["Status"].startswith("can't be read: ")
