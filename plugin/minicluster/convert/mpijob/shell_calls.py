"""Calls of mpirun in a shell's text, found without a shell: their words up to the program, and where they stand."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from minicluster.convert.mpijob import run_time
from minicluster.errors import ConvertError

#: Names by which MPIs are started
STARTERS = {
    *("mpirun", "mpirun.openmpi", "mpirun.mpich", "mpiexec", "mpiexec.openmpi", "mpiexec.mpich", "mpiexec.hydra"),
    *("orterun", "prterun"),
}
#: Words after which a command may follow
BEFORE_COMMANDS = {
    *("then", "do", "else", "elif", "if", "while", "until", "!", "{", "time", "exec", "command", "nohup", "env"),
}
#: Commands that only print their words, or look them up
TELLERS = {"echo", "printf", "which", "type", "hash"}
SETS_SHELL_VARIABLE = re.compile(r"[A-Za-z_]\w*\+?=")
#: SSH to the workers: a program, or in an expansion
SSH = ("ssh", "scp")
USES_SSH = re.compile(r"(?<![\w./-])(?:ssh|scp)(?=\s)")
DURATION = re.compile(r"\d+(?:\.\d+)?[smhd]?")
HERE_DOCUMENT = re.compile(r"(?<!<)<<-?[ \t]*[\\'\"\w]")
MENTION = re.compile(r"(?<![\w./-])(?:[\w./-]*/)?(?:mpirun|mpiexec)\b")
SHELL_TOKEN = re.compile(
    r"""(?P<blank>(?:[ \t]|\\\n)+)|(?P<comment>\#[^\n]*)|(?P<end>[;&|()\n]+)|"""
    r"""(?P<redirect>\d*(?:[<>]+&?))|(?P<word>.)""",
    re.DOTALL,
)
#: A piece of a word: quoted, escaped, an expansion, or plain
WORD_PIECE = re.compile(
    r"""'(?P<single>[^']*)'|"(?P<double>(?:[^"\\]|\\.)*)"|\\(?P<escaped>.)|"""
    r"""(?P<expansion>\$\([^()]*(?:\([^()]*\)[^()]*)*\)|\$\{[^}]*\}|`[^`]*`|\$'(?:[^'\\]|\\.)*'|\$)|"""
    r"""(?P<plain>[^\s;&|()<>'"\\$`]+)""",
    re.DOTALL,
)


@dataclass(frozen=True)
class Word:
    """A word of a command."""

    raw: str  #: as a shell takes it
    text: str | None  #: what it says; None if a shell expands it
    start: int = 0  #: place in the shell's text
    end: int = 0


@dataclass(frozen=True)
class Call:
    """A call of mpirun: its name and all words after it, up to the end of the command."""

    words: list[Word]
    is_whole: bool  #: whether the shell's text has nothing else


def calls(text: str) -> list[Call]:
    """Return the calls of mpirun. Raises ConvertError for none, and where one may be that is not understood."""
    if MENTION.search(text) and HERE_DOCUMENT.search(text):
        raise ConvertError("its shell text has a here-document beside mpirun: make it a script in the image")
    calls_made: list[Call] = []
    pieces = list(_commands(text))
    for words, has_redirect in pieces:
        place = _program(words)
        name = ((words[place].text or "") if place < len(words) else "").rpartition("/")[2]
        if name in STARTERS:
            leads = all(word.text == "exec" for word in words[:place])
            calls_made.append(Call(words[place:], len(pieces) == 1 and leads and not has_redirect))
            continue
        text = " ".join(word.raw for word in words)
        if name not in TELLERS:
            _refuse_hidden(words)
        if name not in TELLERS or re.search(r"\$\(|`", text):
            _refuse_uses(text, name)
    if not calls_made:
        raise ConvertError("its shell text calls no mpirun, so the work is not known: call the program by mpirun")
    return calls_made


def _refuse_hidden(words: list[Word]) -> None:
    hidden = next(
        (word.raw for word in words if MENTION.search(word.raw) and not SETS_SHELL_VARIABLE.match(word.raw)), None
    )
    if hidden:
        raise ConvertError(
            f"mpirun is an argument of another command, in {' '.join(hidden.split())[:60]!r}: call it as a command"
        )


def _refuse_uses(text: str, name: str) -> None:
    """Raise ConvertError for a command that needs what is not given here; ``name`` is its program."""
    used = [name] if name in SSH else USES_SSH.findall(text)
    if used:
        raise ConvertError(f"its shell text uses {used[0]}, and no host here has SSH: {run_time.BY_HOSTLIST}")
    run_time.refuse(text, "its shell text")


def _program(words: list[Word]) -> int:
    """Return the place of the word that names the program of a command."""
    place = 0
    while place < len(words):
        text = words[place].text
        if text == "timeout":
            place += 1
            while place < len(words) and re.fullmatch(rf"-.*|{DURATION.pattern}", words[place].text or ""):
                place += 1
        elif text == "time" and words[place + 1 : place + 2] and words[place + 1].text == "-p":
            place += 2
        elif text in BEFORE_COMMANDS or SETS_SHELL_VARIABLE.match(words[place].raw):
            place += 1
        else:
            break
    return place


def _commands(text: str) -> Iterator[tuple[list[Word], bool]]:
    """Yield the words of each simple command, and whether it has a redirection. Raises ConvertError."""
    words: list[Word] = []
    has_redirect = False
    place = 0
    while place < len(text):
        token = SHELL_TOKEN.match(text, place)
        kind = token.lastgroup if token else "word"
        if token is None or kind == "word":
            word = _word(text, place)
            words.append(word)
            place = word.end
            continue
        place = token.end()
        has_redirect = has_redirect or kind == "redirect"
        if kind == "end" and words:
            yield words, has_redirect
            words, has_redirect = [], False
    if words:
        yield words, has_redirect


def _word(text: str, start: int) -> Word:
    place, said, is_plain = start, "", True
    while match := WORD_PIECE.match(text, place):
        place = match.end()
        double = match["double"]
        if match["expansion"] is not None or (double is not None and re.search(r"(?<!\\)[$`]", double)):
            is_plain = False
        elif double is not None:
            said += re.sub(r"\\([$`\"\\])", r"\1", double)
        elif match["escaped"] is not None:
            said += "" if match["escaped"] == "\n" else match["escaped"]
        else:
            said += match["single"] if match["single"] is not None else match["plain"]
            is_plain = is_plain and not (match["plain"] and re.search(r"[*?\[~{]", match["plain"]))
    if place == start:
        raise ConvertError(f"its shell text can't be read at {text[start : start + 20]!r}: close the quotes")
    return Word(text[start:place], said if is_plain else None, start, place)


@dataclass
class Launch:
    """What a call of mpirun asks for."""

    tasks: Word | None = None  #: None: as many as there are slots
    per_node: Word | None = None
    cores: int = 0  #: cores of a task; 0 if it is not said
    is_cyclic: bool = False  #: rank 0 on the first node, rank 1 on the second …
    may_exceed: bool = False  #: more tasks than slots
    binds: bool = True
    directory: Word | None = None
    variables: dict[str, Word] = field(default_factory=dict)
    exported: list[str] = field(default_factory=list)  #: variables of the launcher that tasks get
    flags: list[str] = field(default_factory=list)  #: for `flux run`
    dropped: dict[str, list[str]] = field(default_factory=dict)  #: words, by the reason
    program: list[Word] = field(default_factory=list)
