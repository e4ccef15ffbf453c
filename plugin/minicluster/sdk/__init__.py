"""MiniClusters from Python: ``from minicluster.sdk import MiniCluster``."""

from minicluster.sdk.asked_nodes import NodeOptions
from minicluster.sdk.cluster import MiniCluster
from minicluster.sdk.exceptions import (
    ApiError,
    ArgumentError,
    ClosedError,
    EndedError,
    JobError,
    JobFailed,
    JobLost,
    JobRefused,
    NotFoundError,
    ReleaseError,
    SdkError,
    WaitTimeoutError,
)
from minicluster.sdk.executor import CommandExecutor
from minicluster.sdk.finished import FinishedJob, Result
from minicluster.sdk.fit import Fit
from minicluster.sdk.forward import PortForward
from minicluster.sdk.job_future import JobFuture
from minicluster.sdk.jobs import Job, JobOptions
from minicluster.sdk.release import CreateOptions
from minicluster.sdk.single_run import RunOptions

__all__ = [
    "ApiError",
    "ArgumentError",
    "ClosedError",
    "CommandExecutor",
    "CreateOptions",
    "EndedError",
    "FinishedJob",
    "Fit",
    "Job",
    "JobError",
    "JobFailed",
    "JobFuture",
    "JobLost",
    "JobOptions",
    "JobRefused",
    "MiniCluster",
    "NodeOptions",
    "NotFoundError",
    "PortForward",
    "ReleaseError",
    "Result",
    "RunOptions",
    "SdkError",
    "WaitTimeoutError",
]
