"""MiniClusters from Python: ``from minicluster.sdk import MiniCluster``."""

from minicluster.sdk.cluster import MiniCluster
from minicluster.sdk.exceptions import (
    ApiError,
    ArgumentError,
    ClosedError,
    EndedError,
    JobError,
    JobLost,
    JobRefused,
    NotFoundError,
    ReleaseError,
    SdkError,
    WaitTimeoutError,
)
from minicluster.sdk.executor import CommandExecutor
from minicluster.sdk.forward import PortForward
from minicluster.sdk.job_future import JobFuture
from minicluster.sdk.job_queue import FunctionFuture
from minicluster.sdk.jobs import Fit, Job, JobOptions, JobTable
from minicluster.sdk.outcome import FinishedJob, JobFailed, RemoteTraceback, Result
from minicluster.sdk.release import CreateOptions, NodeOptions, RunOptions

__all__ = [
    "ApiError",
    "ArgumentError",
    "ClosedError",
    "CommandExecutor",
    "CreateOptions",
    "EndedError",
    "FinishedJob",
    "Fit",
    "FunctionFuture",
    "Job",
    "JobError",
    "JobFailed",
    "JobFuture",
    "JobLost",
    "JobOptions",
    "JobRefused",
    "JobTable",
    "MiniCluster",
    "NodeOptions",
    "NotFoundError",
    "PortForward",
    "ReleaseError",
    "RemoteTraceback",
    "Result",
    "RunOptions",
    "SdkError",
    "WaitTimeoutError",
]
