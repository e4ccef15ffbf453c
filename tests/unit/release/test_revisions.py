"""The way back of a replacement, and what it would lose."""

import pytest
from minicluster.errors import StateError, ToolError
from minicluster.lifecycle.remaking import changes, check
from minicluster.release.revisions import REVISION_MARK, Revision, way_back

FIRST = Revision(1, "superseded", "Install complete")


@pytest.mark.parametrize(
    ("later", "is_up", "number"),
    [
        ([], True, 1),
        ([Revision(2, "deployed", "Upgrade complete")], False, 2),
        # a replacement that has reached its quorum is what the next one goes back to
        ([Revision(2, "deployed", f"{REVISION_MARK}1")], True, 2),
        ([Revision(2, "deployed", f"{REVISION_MARK}1")], False, 1),
        ([Revision(2, "failed", "no"), Revision(3, "pending-upgrade", "Preparing upgrade")], False, 1),
        # a rollback whose answer was lost has brought back what is up
        (
            [Revision(2, "superseded", f"{REVISION_MARK}1"), Revision(3, "failed", 'Rollback "mc" failed: timeout')],
            True,
            1,
        ),
        ([Revision(2, "deployed", f"{REVISION_MARK}1"), Revision(3, "failed", 'Upgrade "mc" failed: no')], True, 2),
        ([Revision(2, "superseded", f"{REVISION_MARK}1"), Revision(3, "deployed", "Rollback to 1")], True, 3),
        # Helm keeps ten revisions
        ([Revision(12, "deployed", f"{REVISION_MARK}11")], False, 12),
    ],
)
def test_a_replacement_that_fails_goes_back_to_what_ran_before(later: list[Revision], is_up: bool, number: int) -> None:
    assert way_back([FIRST, *later], is_up) == number


def test_a_release_that_was_never_deployed_has_no_way_back() -> None:
    with pytest.raises(ToolError, match=r"^the release has no revision that was deployed: uninstall it, and i"):
        way_back([Revision(1, "failed", "no")], is_up=False)


@pytest.mark.parametrize(
    "kept", [{"state": {"capacity": "1Gi"}}, {"state": {"claimName": "a"}}, {"archive": {"path": "/a"}}]
)
def test_only_a_queue_that_is_stored_survives_a_replacement(kept: dict[str, object]) -> None:
    check("mini", "rel", [], kept)
    with pytest.raises(StateError, match=r"^cleanup is true, so an upgrade without a Job of mini is refused: set"):
        check("mini", "rel", [], {**kept, "cleanup": True})
    with pytest.raises(StateError, match=r"^mini keeps no queue, .*; or uninstall rel and install it again$"):
        check("mini", "rel", [], {"state": {}})


def test_the_changes_are_those_of_the_jobs_record() -> None:
    job = {"metadata": {"annotations": {"minicluster/immutable": '{"maxSize": "4", "state.claimName": "a"}'}}}
    assert list(changes(job, {"maxSize": "4", "state.claimName": "a"})) == []
    found = list(changes(job, {"maxSize": "8", "state.claimName": "a"}))
    assert found == [("maxSize", "4", "8")]
    kept = {"state": {"claimName": "a"}}
    check("mini", "rel", found, kept)
    with pytest.raises(StateError, match=r"^state.claimName is a, asked is b: the queue of mini would be lost"):
        check("mini", "rel", list(changes(job, {"maxSize": "4", "state.claimName": "b"})), kept)
