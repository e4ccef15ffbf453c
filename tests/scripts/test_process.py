"""A container's main process: signals, snippets, exit codes."""

from pods import Make, until

from tools.clients import TooLateError

#: Starts a child as the containers' main processes do. PS4 is evaluated before each of its commands: one of these
#: times comes together with a signal.
SCRIPT = """set -eu
. "$MINICLUSTER_HOME/minicluster/settings.sh"
mc_files=$MINICLUSTER_HOME/minicluster
. "$mc_files/process.sh"
hook() {
  n=1
  until mkdir "$HOOKS/$n"; do n=$((n + 1)); done
  [ "$n" != "$NUMBER" ] || kill -TERM $$
}
trap stop TERM INT
exec 2>/dev/null
PS4='$(hook)'
set -x
run sh -c ': >"$HOOKS/begun"; exec sleep 600'
set +x
echo "stopped ${mc_stopped:-no}"
"""


def test_a_signal_at_any_point_of_a_start_reaches_the_child_or_prevents_it(make: Make) -> None:
    """A signal between any two commands of run() reaches the child, or prevents its start."""
    pod = make()
    script = pod.root / "script"
    script.write_text(SCRIPT)
    points = 0
    for number in range(1, 100):
        hooks = pod.root / f"hooks-{number}"
        hooks.mkdir()
        process = pod.start(str(script), HOOKS=str(hooks), NUMBER=str(number))
        reached = hooks / str(number)
        until(lambda: not process.runs or reached.exists() or (hooks / "begun").exists())  # noqa: B023
        try:
            until(lambda: not process.runs or reached.exists(), seconds=3)  # noqa: B023
        except TooLateError:
            # the child runs, and there is nothing to do but to wait for it
            break
        assert (process.wait(), process.log) == (0, "stopped 1\n"), number
        points += 1
    assert points > 3
    assert process.stop() == 0
