"""Each program of the pods is found by a unique file name."""

import kube
import state
import suspend
from minicluster.cluster import job, pods
from minicluster.kube.names import OUR_PREFIX
from minicluster.pod import programs
from minicluster.status import snapshot
from support import PACKAGE


def test_each_program_of_the_pods_has_a_unique_file_name() -> None:
    files = [path for path in (PACKAGE / "pod").rglob("[!_]*") if path.is_file() and path.parent.name != "__pycache__"]
    assert sorted(path.name for path in files) == list(programs())


def test_commands_and_programs_of_the_pods_use_the_same_constants() -> None:
    assert (pods.SUSPENDED, job.IDLE) == (suspend.SUSPENDED, suspend.IDLE)
    assert job.MANAGER == kube.MANAGER
    assert (OUR_PREFIX, snapshot.MEMORY_SHORT) == (state.OWN_REASON, state.MEMORY_REASON)
