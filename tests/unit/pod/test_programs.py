"""The programs of the pods: each is found, by a name of its own."""

import kube
import state
import suspend
from minicluster.burst import plan
from minicluster.cluster import job, wake
from minicluster.pod import programs
from support import PACKAGE


def test_each_file_has_a_name_of_its_own_in_one_of_the_folders() -> None:
    files = [path for path in (PACKAGE / "pod").rglob("[!_]*") if path.is_file() and path.parent.name != "__pycache__"]
    assert sorted(path.name for path in files) == list(programs())


def test_commands_and_programs_have_the_same_words() -> None:
    assert (job.SUSPENDED, job.IDLE) == (suspend.SUSPENDED, suspend.IDLE)
    assert wake.MANAGER == kube.MANAGER
    assert plan.OURS == state.OWN_REASON
