"""Where a MiniCluster is, as the commands that a picture shows name it."""

import shlex


def options_of(namespace: str, context: str) -> str:
    """Return the options of a command, with a space before each; "" where the current ones are meant."""
    given = {"-n": namespace, "--context": context}
    return "".join(f" {option} {shlex.quote(value)}" for option, value in given.items() if value)
