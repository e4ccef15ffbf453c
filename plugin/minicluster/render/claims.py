"""Refuses changes of claims that exist already: on an upgrade, or because an earlier release kept them.

The spec of a PersistentVolumeClaim is immutable, except for a larger request. The API server would refuse a change only
when half of the release is applied.
"""

from minicluster.errors import SpecError
from minicluster.render.handover import LiveClaim
from minicluster.render.quantity import to_number


def refuse(claim: LiveClaim) -> None:
    """Raise SpecError if the values ask for what the claim can't change."""
    was, asked = claim.was, claim.asked
    if claim.deleted:
        raise SpecError(f"{claim.place}: the claim {claim.name} is being deleted: wait until it is gone")
    if to_number(asked.capacity) < to_number(was.capacity):
        raise SpecError(
            f"{claim.place}.capacity is {asked.capacity}, the claim {claim.name} has {was.capacity}: "
            f"a claim can't shrink; ask for {was.capacity} or more, or {_anew(claim)}"
        )
    if asked.storage_class is not None and asked.storage_class != (was.storage_class or ""):
        raise SpecError(_immutable(claim, "storageClass", asked.storage_class, was.storage_class or ""))
    if asked.access_modes and asked.access_modes != was.access_modes:
        raise SpecError(_immutable(claim, "accessModes", ", ".join(asked.access_modes), ", ".join(was.access_modes)))


def _immutable(claim: LiveClaim, field: str, asked: str, was: str) -> str:
    return (
        f"{claim.place}.{field} is {asked or '(none)'}, the claim {claim.name} has {was or '(none)'}: "
        f"that is immutable; drop the value, or {_anew(claim)}"
    )


def _anew(claim: LiveClaim) -> str:
    return f"uninstall, delete the claim with its data (kubectl delete pvc {claim.name}), and install again"
