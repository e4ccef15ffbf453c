"""Patterns of names that Kubernetes accepts (RFC 1123), names of its own and of the chart, and a place in a command."""

import shlex

LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
SUBDOMAIN = rf"{LABEL}(\.{LABEL})*"
#: The most characters of a label, such as the name of a Service, a host or a namespace.
NAME_CHARACTERS = 63
#: Label that Kubernetes gives each pod of an Indexed Job
INDEX = "batch.kubernetes.io/job-completion-index"
#: The chart's name, where no parent chart gives it an alias
CHART_NAME = "minicluster"
#: After the name of a MiniCluster: its ConfigMap, and the Secret with its certificate
CONFIG_SUFFIX, CURVE_SUFFIX = "-config", "-curve"
#: The most characters of a release's name, as Helm checks it (pkg/chart/common/util, ValidateReleaseName)
RELEASE_CHARACTERS = 53
#: The reasons of our drains begin with this. Only these are undrained when the hosts come back. Our lines of a pod's
#: log begin with it, too.
OUR_PREFIX = "minicluster: "
#: The attribute of a job that says whether it may run again: 1 or 0
REQUEUE_ATTRIBUTE = "user.minicluster.requeue"


def options_of(namespace: str, context: str) -> str:
    """Return the options of a command, with a space before each; "" where the current ones are meant."""
    given = {"-n": namespace, "--context": context}
    return "".join(f" {option} {shlex.quote(value)}" for option, value in given.items() if value)
