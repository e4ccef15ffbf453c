"""Programs of other people that speak Slurm, unchanged, where they are installed beside the tests."""

import sys

import pytest
from broker_clusters import Make
from broker_pods import Flux

from tools.releases import MOUNT

#: Tasks of an array, one that fails, and one that saves its state at its time limit and goes on under the same id
SUBMITIT = """
import time, submitit

class Counts:
    count = 0
    def __call__(self):
        while self.count < 100:
            time.sleep(0.1)
            self.count += 1
        return self.count, submitit.JobEnvironment().job_id
    def checkpoint(self):
        return submitit.helpers.DelayedSubmission(self)

executor = submitit.AutoExecutor("/tmp/home/logs/%j")
executor.update_parameters(timeout_min=1, slurm_array_parallelism=2, slurm_signal_delay_s=50)
counts = executor.submit(Counts())
executor.update_parameters(slurm_signal_delay_s=5)
print([job.result() for job in executor.map_array(lambda number: number * number, range(4))])
print(type(executor.submit(lambda: 1 / 0).exception()).__name__)
print(counts.result() == (100, counts.job_id), "timed-out" in counts.stderr())
"""


def test_submitit_runs_arrays_and_goes_on_after_a_time_out(make: Make, flux: Flux) -> None:
    pytest.importorskip("submitit", reason="submitit is not installed beside the tests")
    cluster = make({"size": 1, "interactive": True}, {"cores": 4}).start().wait_for_ready()
    done = cluster.lead.run("sh", "-c", '. "$1/flux-view.sh"; "$2" -c "$3"', "sh", MOUNT, sys.executable, SUBMITIT)
    # before flux-core 0.60 a file of output begins anew with the second try
    assert done.stdout == f"[0, 1, 4, 9]\nFailedJobError\nTrue {flux.minor >= 60}\n", f"{done.stderr}{cluster.lead.log}"
