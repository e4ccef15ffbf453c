"""python -m tools.simulator: runs MiniClusters in virtual time, one a seed, and tells which of them broke what."""

import sys
import time

import click

from tools.simulator.disturb import episode
from tools.simulator.faults import FAULTS, is_detected


@click.command()
@click.option("--hours", default=100.0, show_default=True, help="Virtual hours.")
@click.option("--seed", default=1, show_default=True, help="Of the first MiniCluster; the next ones follow.")
@click.option("--log", is_flag=True, help="Print what the programs say.")
@click.option("--faults", is_flag=True, help="Bring back each fault of the past, and look whether it is seen.")
def main(hours: float, seed: int, log: bool, faults: bool) -> None:
    """Run, and exit with 1 if something broke, or a fault is not seen."""
    sys.exit(1 if (seen() if faults else run(hours, seed, log)) else 0)


def run(hours: float, seed: int, log: bool) -> int:
    """Run, and return how many MiniClusters broke something."""
    begin, seconds, overslept, broken = time.process_time(), 0.0, 0, 0
    while seconds < hours * 3600:
        try:
            world = episode(seed)
        except AssertionError as error:
            broken += 1
            click.echo(f"seed {seed}: {error}")
        else:
            seconds += world.loop.now
            overslept += world.overslept
            if log:
                click.echo("\n".join(world.said))
        seed += 1
    speed = seconds / (time.process_time() - begin)
    late = f"{overslept} slept on a job that came in their lead's last seconds"
    click.echo(f"{seconds / 3600:.0f} hours, {speed:.0f} times as fast as the clock: {broken} broken, {late}")
    return broken


def seen() -> int:
    """Tell of each fault whether it is seen; return how many are not."""
    missed = [fault for fault in FAULTS if not is_detected(fault)]
    for fault in FAULTS:
        click.echo(f"{'missed' if fault in missed else 'seen  '} seed {fault.seed:3}  {fault.what}")
    return len(missed)


if __name__ == "__main__":
    main()
