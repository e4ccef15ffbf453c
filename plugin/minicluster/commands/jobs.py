"""Commands about jobs: ``jobs``, ``output``, and ``simulate``, which replays them with other sizes or policies."""

import json
from pathlib import Path

import click

from minicluster import picture
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
def jobs_command(
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
    picture.check()
    from minicluster.picture import page

    document = (
        page.of_records(name, read_report(report), most)
        if report
        else page.of_cluster(kubernetes, name, most, streams.say)
    )
    page.write(html, document, options_of(kubernetes.namespace, kubernetes.context), streams.say)


@click.command("output")
@options.cluster
@click.argument("job")
@options.where
@click.option("-f", "--follow", is_flag=True, help="Go on until the job has ended.")
@options.no_wait
def output_command(name: str, job: str, namespace: str, context: str, follow: bool, no_wait: bool) -> int:
    """Print what a job of a MiniCluster has printed.

    Its standard output goes to standard output, and its standard error to standard error. JOB is the id of the job, as
    `minicluster jobs` and Flux show it, or its number. The job may wait, run or have ended; Ctrl-C does not end it. If
    its output goes to files, a line says to which, and they are printed.

    The exit code is 0 when the output was printed, however the job ended. It is 1 if there is no such job, or Flux has
    forgotten its output.

    \b
    Examples:
      minicluster output flux-sample f2a9RQ8Kb
      minicluster output flux-sample f2a9RQ8Kb -f
    """
    from minicluster.exec.submitted import show_output

    return show_output(Kubernetes(context, namespace), name, job, streams.say, follows=follow, waits=not no_wait)


#: The help, with the keys
SIMULATE_HELP = f"""\
Say what other sizes or policies would have done.

The jobs that have ended are replayed in a model of the scheduler: each is submitted when it was, and takes the
nodes, cores and time that it took. The first line is what happened, the second what the model makes of the present
size and policy: the difference is its error. It takes all nodes for alike, and knows no dependencies of jobs.

{json_keys.in_words("simulate", "With -o json each is a line:")}

\b
Examples:
  minicluster simulate flux-sample --size 4 --size 8
  minicluster simulate flux-sample --policy easy --policy fcfs
  minicluster simulate flux-sample --size 16 --html sixteen.html
"""


@click.command("simulate", help=SIMULATE_HELP)
@options.of_cluster
@click.option("--size", "sizes", multiple=True, type=click.IntRange(1, 10000), help="Nodes; may be given again.")
@click.option(
    "--policy",
    "policies",
    multiple=True,
    type=click.Choice(["fcfs", "easy", "conservative"]),
    help="Policy of the scheduler; may be given again.",
)
@click.option(
    "--html", type=click.Path(dir_okay=False, path_type=Path), help="Write a picture of the last one to this file, too."
)
@options.output
def simulate_command(
    name: str,
    namespace: str,
    context: str,
    sizes: tuple[int, ...],
    policies: tuple[str, ...],
    html: Path | None,
    output: str,
) -> None:
    """Say what other sizes or policies would have done."""
    from minicluster.status import simulated

    kubernetes = Kubernetes(context, namespace)
    load = simulated.load_of(kubernetes, name)
    runs = simulated.simulate(load, sizes, policies)
    lines = [*simulated.outcomes(load, runs)]
    if output == "json":
        streams.write("".join(json.dumps(each._asdict()) + "\n" for each in lines).encode())
    else:
        streams.write(simulated.table(lines, streams.say, streams.width()).encode())
    if html:
        picture.check()
        from minicluster.picture import page

        last = runs[-1]
        rows = simulated.records(load, last)
        timeline = page.of_records(f"{load.name}: {last.size} nodes, {last.policy}", rows, len(rows))
        page.write(html, timeline, options_of(kubernetes.namespace, kubernetes.context), streams.say)
