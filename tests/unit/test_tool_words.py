"""What kubectl 1.33, Helm 3 and 4 and credential plugins say of a failure, and what of it is told."""

import os
import stat
from pathlib import Path

import pytest
from minicluster.errors import AwayError, KubernetesError
from minicluster.exec.archive import read_failure
from minicluster.kube import tool
from minicluster.kube.kubectl import Kubernetes, ported
from minicluster.kube.tool import CommandError
from minicluster.status.lookup import GOES_ON, LOG_IN, refusals

#: What kubectl logs before it gives up: a line each time that it asks what the server has
ASKED = (
    'E1127 02:26:58.6 18475 memcache.go:265] "Unhandled Error" err="couldn\'t get current server API group list: {}"\n'
)
SSO = "Error loading SSO Token: Token for lab does not exist\n"
FAILED = "getting credentials: exec: executable /opt/bad.sh failed with exit code 255"
ABSENT = """\
getting credentials: exec: executable aws-not-there not found

It looks like you are trying to use a client-go credential plugin that is not installed.

To learn more about this feature, consult the documentation available at:
      https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins
"""
#: The same, as kubectl logs it
ABSENT_LOGGED = (
    'E1127 02:26:59.5 18605 memcache.go:265] "Unhandled Error" err=<\n'
    + "".join(f"\t{line}\n" for line in f"{ABSENT}\nget it from the intranet\nor ask".splitlines())
    + " >\n"
)
TRACE = """\
Traceback (most recent call last):
  File "aws.py", line 3, in get_token
    raise expired
botocore.exceptions.UnauthorizedSSOTokenError: The SSO session has expired or is otherwise invalid.

To refresh this SSO session run aws sso login.
"""
#: What is said, and what is told of it
SAID = {
    "a plugin fails": (
        (SSO + ASKED.format(FAILED)) * 3 + f"{SSO}Unable to connect to the server: {FAILED}\n",
        f"{FAILED}: {SSO.strip()}",
    ),
    "a plugin fails, Helm": (
        f'WARNING: the file is group-readable\n{SSO}Error: kubernetes cluster unreachable: Get "https://a": {FAILED}\n',
        f"{FAILED}: WARNING: the file is group-readable {SSO.strip()}",
    ),
    "a plugin has a traceback": (
        (TRACE + ASKED.format(FAILED)) * 2 + f"{TRACE}Unable to connect to the server: {FAILED}\n",
        f"{FAILED}: botocore.exceptions.UnauthorizedSSOTokenError: The SSO session has expired or is otherwise invalid."
        " To refresh this SSO session run aws sso login",
    ),
    "a plugin is missing": (
        ABSENT_LOGGED * 2 + f"Unable to connect to the server: {ABSENT}\nget it from the intranet\nor ask\n",
        "getting credentials: exec: executable aws-not-there not found: get it from the intranet or ask",
    ),
    "a plugin is missing, no hint, Helm": (
        f'Error: Kubernetes cluster unreachable: Get "https://127.0.0.1:18443/version": {ABSENT}',
        "getting credentials: exec: executable aws-not-there not found",
    ),
    "a plugin says Error: too": (
        f"Error: no token\nhint: log in\nUnable to connect to the server: {FAILED}\n",
        f"{FAILED}: Error: no token hint: log in",
    ),
    "a plugin prints no JSON": (
        "Unable to connect to the server: getting credentials: decoding stdout: couldn't get version/kind; json\n",
        "getting credentials: decoding stdout: couldn't get version/kind; json",
    ),
    "a certificate has expired": (
        ASKED.format("x509") + "Unable to connect to the server: tls: failed to verify certificate: x509: certificate "
        "has expired or is not yet valid: current time 2026-11-27T02:00:00Z is after 2021-01-01T00:00:00Z\n",
        "Unable to connect to the server: tls: failed to verify certificate: x509: certificate has expired or is not "
        "yet valid: current time 2026-11-27T02:00:00Z is after 2021-01-01T00:00:00Z",
    ),
    "no server": (
        ASKED.format("refused") * 5 + "The connection to the server a was refused - did you specify the right host?\n",
        "The connection to the server a was refused - did you specify the right host?",
    ),
    "several fields are wrong": (
        'Warning: old\nThe Job "a" is invalid: \n* spec.b: no\n* spec.c: no\n',
        'The Job "a" is invalid: * spec.b: no * spec.c: no',
    ),
    "several objects are refused": (
        'error: error when creating "a"\nError from server (NotFound): b\nError from server (Forbidden): c\n',
        'error when creating "a" Error from server (NotFound): b Error from server (Forbidden): c',
    ),
    "Helm's hooks fail": (
        'level=WARN msg="x"\nI1127 02:26:58.6 1 warnings.go:110] "Warning: y"\nError: UPGRADE FAILED: pre-upgrade '
        "hooks failed: 1 error occurred:\n\t* job a failed: BackoffLimitExceeded\n\n\n",
        "UPGRADE FAILED: pre-upgrade hooks failed: 1 error occurred: * job a failed: BackoffLimitExceeded",
    ),
    "a program of the pod": (f"warning: old\n{TRACE}", "warning: old " + " ".join(TRACE.split("\n", 3)[3].split())),
    "nothing but noise": ("E1127 02:26:58.6 1 a.go:2] b\ncommand terminated with exit code 3\n", ""),
}


@pytest.mark.parametrize("case", SAID)
def test_a_tool_s_reason_is_told_whole_and_without_its_log(case: str) -> None:
    said, told = SAID[case]
    assert " ".join(tool.reason(said).split()) == told


def test_each_file_that_tar_can_not_read_is_told() -> None:
    said = (
        "tar: Removing leading `/' from member names\ntar: /a: Cannot open: Permission denied\n"
        "tar: /b: Cannot open: Permission denied\ntar: Exiting with failure status due to previous errors\n"
        "command terminated with exit code 2\n"
    )
    told = "tar: /a: Cannot open: Permission denied\ntar: /b: Cannot open: Permission denied"
    assert read_failure(said.encode(), 2) == ([], told)


@pytest.mark.parametrize(
    ("said", "way_out"),
    [
        (SAID["a plugin fails"][0], LOG_IN),
        ("error: You must be logged in to the server (Unauthorized)\n", LOG_IN),
        (SAID["no server"][0], GOES_ON),
    ],
)
def test_who_is_logged_out_may_log_in_and_go_on(said: str, way_out: str) -> None:
    error = ported(CommandError("kubectl get", tool.reason(said)))
    assert isinstance(error, AwayError)
    assert error.status == (401 if "Unauthorized" in said else 0)
    with pytest.raises(Exception, match=rf": {way_out}$"), refusals():
        raise error


def test_a_plugin_that_waits_for_somebody_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "kubectl"
    path.write_text("#!/bin/sh\necho 'To sign in, enter the code ABC' >&2\nexec sleep 30\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(KubernetesError) as caught:
        Kubernetes().within(0).get("job", "a")
    assert caught.value.reason == "no answer within 1 s: To sign in, enter the code ABC"
