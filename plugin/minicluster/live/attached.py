"""What `flux job attach` needs to show a job as the `flux run` did that submitted it."""

from collections.abc import Sequence

#: Options of `flux run` that have no value: those of `flux job attach`, and the others
ATTACH_FLAGS = {"l": "--label-io", "u": "--unbuffered"}
RUN_FLAGS = {**ATTACH_FLAGS, "x": "--exclusive", "v": "--verbose", "h": "--help"}
OTHER_RUN_FLAGS = {"--dry-run", "--quiet", "--list-plugins", "--debug-emulate"}


def attach_options(words: Sequence[str]) -> list[str]:
    """Return the options of `flux job attach`, by the words of a `flux run`."""
    found: list[str] = []
    rest = [*words[1:]]
    while rest and rest[0].startswith("-") and rest[0] != "--":
        word = rest.pop(0)
        given = [word] if word.startswith("--") else []
        for place, letter in enumerate(word[1:], 1) if not given else ():
            given.append(RUN_FLAGS.get(letter, f"-{letter}"))
            if letter not in RUN_FLAGS:
                # the rest of the word is its value, or the next word
                if place + 1 == len(word):
                    rest[:1] = []
                break
        found += [option for option in given if option in ATTACH_FLAGS.values()]
        if word.startswith("--") and "=" not in word and word not in (*RUN_FLAGS.values(), *OTHER_RUN_FLAGS):
            rest[:1] = []
    return found
