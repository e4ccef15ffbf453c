"""``minicluster jobs``: what ran, also after the end."""

import json
from pathlib import Path

import click

from minicluster.commands import json_keys, options
from minicluster.console import streams
from minicluster.errors import UsageError
from minicluster.kube.kubectl import Kubernetes
from minicluster.kube.names import options_of
from minicluster.status.reported import PICTURE_JOBS, SHOWN_JOBS, KnownJobs, find_jobs, last, read_report, table

#: The help, with the keys
JOBS_HELP = f"""\
List the jobs of a MiniCluster.

Lists the active ones, and the last of those that have ended. While the lead runs, it knows them all. After the end
they are read from the lead's log, which needs report.log; with report.path alone, the error names the file.

With -o wide, MEM is the most memory that a job has used of what its nodes have, and CPU and GPU what it has kept
busy, on average, of what it had; - is unknown.

--html writes a page that needs no network, by Bokeh: pip install 'minicluster[dashboard]'.

{json_keys.in_words("jobs", "With -o json each job is a line. What a job doesn't have is null:")}

\b
Examples:
  minicluster jobs flux-sample -o wide
  minicluster jobs flux-sample --html jobs.html
  minicluster jobs flux-sample -o json | jq -r 'select(.result == "FAILED").name'
"""


@click.command("jobs", help=JOBS_HELP)
@options.of_cluster
@click.option(
    "--count",
    type=click.IntRange(min=0),
    help=f"How many of the jobs that have ended: the last {SHOWN_JOBS}, or {PICTURE_JOBS} with --html, by default.",
)
@click.option(
    "--html", type=click.Path(dir_okay=False, path_type=Path), help="Write a picture of them to this file instead."
)
@click.option(
    "--report",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Read them from this report (report.path), and ask no cluster.",
)
@options.output_of("A table for people, also of what jobs have used, or JSON for programs.", "table", "wide", "json")
def command(
    name: str, namespace: str, context: str, count: int | None, html: Path | None, report: Path | None, output: str
) -> None:
    """List the jobs of a MiniCluster."""
    kubernetes = Kubernetes(context, namespace)
    if html:
        _write(kubernetes, name, html, PICTURE_JOBS if count is None else count, report, output)
        return
    most = SHOWN_JOBS if count is None else count
    if report:
        rows, now = KnownJobs(last(read_report(report), most, streams.say))
    else:
        rows, now = find_jobs(kubernetes, name, streams.say, most)
    if output == "json":
        streams.write("".join(json.dumps(row) + "\n" for row in rows).encode())
    elif rows:
        streams.write(table(rows, now, streams.width(), is_wide=output == "wide").encode())
    else:
        streams.say(f"no jobs in {name}")


def _write(kubernetes: Kubernetes, name: str, html: Path, most: int, report: Path | None, output: str) -> None:
    """Write the picture. Raises UsageError for another output; StateError, StatusError, OutputError, ToolError."""
    if output != "table":
        raise UsageError(f"--html writes a page: leave -o {output} out")
    # Bokeh is installed where pictures are wanted
    from minicluster.picture import html_export  # noqa: PLC0415

    document = (
        html_export.of_records(name, read_report(report), most)
        if report
        else html_export.of_cluster(kubernetes, name, most, streams.say)
    )
    html_export.write(html, document, options_of(kubernetes.namespace, kubernetes.context), streams.say)
