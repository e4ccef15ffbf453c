"""What a job has printed, by a program on the lead."""

from minicluster.kube.kubectl import Kubernetes
from minicluster.lead.ask import program_words
from minicluster.lead.program import first_line
from minicluster.live.ready import find_ready_lead
from minicluster.live.run import run_program
from minicluster.streams import Say


def show_output(kubernetes: Kubernetes, name: str, job: str, say: Say, *, follows: bool, waits: bool) -> int:  # noqa: PLR0913 - one has a name each
    """Print the output of a job, with ``follows`` until its end; return 1 if there is none. Raises StatusError."""
    lead = find_ready_lead(kubernetes, name, say, waits=waits)
    words = program_words(lead, lead.cluster, job, *(["follow"] if follows else []))
    return run_program(kubernetes, lead, words, first_line("printed"))
