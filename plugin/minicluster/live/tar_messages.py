"""What tar in a pod says: why it failed, or which files changed while it read them, which is no failure."""

import re

from minicluster import lines, tool
from minicluster.kube.kubectl_stream import COMMAND_FAILED
from minicluster.live.archive import FileChange
from minicluster.tool import CommandError

#: What explains no failure
NOTES = re.compile(
    r"\S*tar: (Removing leading |Exiting with failure status|Error is not recoverable|error exit delayed )"
)
#: What GNU tar says of a file that is written or removed meanwhile, and busybox of one that is removed; the exit code
#: is then 1, and the archive whole
CHANGED = re.compile(
    r"\S*tar: (?:can't open ')?(?P<name>.*?)'?: "
    r"(?P<what>file (?:changed as|removed before) we read it|file shrank by \d+ bytes; padding with zeros|"
    r"no such file or directory)",
    re.IGNORECASE,
)
CHANGED_CODE = 1
#: What busybox says of a file that gets shorter: it stops there
SHORT, SHRANK = re.compile(r"\S*tar: short read"), "a file became shorter while tar read it: run it again"


def read_failure(said: bytes, code: int) -> tuple[list[FileChange], str]:
    """Return the files that changed while tar read them; none, and the reason, "" if unknown, when it failed."""
    told = [line for line in lines.split(tool.reason(tool.text(said))) if not NOTES.match(line)]
    found = [CHANGED.fullmatch(line) for line in told]
    if code == CHANGED_CODE and COMMAND_FAILED.search(said) and all(found):
        return [FileChange(each["what"].lower(), each["name"]) for each in found if each], ""
    left = [line for line, match in zip(told, found, strict=True) if not match] or told
    why = SHRANK if any(map(SHORT.fullmatch, left)) else "\n".join(left)
    return [], f"{why}: ask for a Role that allows it" if CommandError("kubectl exec", why).is_forbidden else why
