"""What a job has printed, by a program on the lead."""

from minicluster.console.streams import Say
from minicluster.exec.piped import CutError
from minicluster.exec.reconnection import Reconnection, job_goes_on
from minicluster.exec.run import run_program
from minicluster.exec.written import Written
from minicluster.kube.kubectl import Kubernetes
from minicluster.lead.ask import program_words
from minicluster.lead.program import first_line
from minicluster.waiting.ready import find_ready_lead


def show_output(kubernetes: Kubernetes, name: str, job: str, say: Say, *, follows: bool, waits: bool) -> int:  # noqa: PLR0913 - one has a name each
    """Print the output of a job, with ``follows`` until its end; return 1 if there is none. Raises StatusError.

    When the connection breaks, it goes on where it was.
    """
    lead = find_ready_lead(kubernetes, name, say, waits=waits)
    written, name = Written(), lead.cluster
    again = Reconnection(kubernetes, name, say, lambda: job_goes_on(name, job, f"output {name} {job} -f"))
    while True:
        words = program_words(lead, name, job, *(["follow"] if follows else []))
        try:
            return run_program(kubernetes, lead, words, first_line("printed"), written)
        except CutError as cut:
            former = lead.uid
            lead, _ = again.ask(cut, lambda _: None)
            if cut.code_of_pod and lead.uid == former:
                raise
        written.again()
