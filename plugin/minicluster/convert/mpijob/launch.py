"""What a call of mpirun asks for."""

from dataclasses import dataclass, field

from minicluster.convert.mpijob.shell_calls import Word


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
