"""A mended copy of a store: it appears when it is complete, or not at all. The store itself is only read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from engine import system
from engine.files.temporary_folders import staged
from engine.inspection.copy_out import copy_out, plan_copy
from engine.mapped.disk import RealDisk
from engine.patching.apply import apply_patches
from engine.patching.patches import Patch, PatchList

STAGING = ".storescope-mended"


def copy_mended(
    path: str | Path, target: str | Path, patches: Iterable[Patch], progress: Callable[[int, int], None]
) -> Path:
    """Copy the store at ``path`` to ``target``, make the changes of ``patches`` there, and return ``target``.

    ``target`` is absent or an empty directory outside of the store. ``progress`` is called with bytes done and in all;
    what it raises ends the copy. Raises :class:`engine.errors.UsageError`, :class:`engine.errors.CannotRead`,
    :class:`engine.errors.StoreError` if there is no room, :class:`engine.patching.patches.BadPatch`, ``OSError``; then
    nothing is left of the copy. After a kill its hidden folder is left, which the next copy there removes.
    """
    destination = plan_copy(path, target).destination
    with staged(destination, STAGING) as folder:
        plan = plan_copy(path, folder)
        copy_out(plan, lambda count: progress(count, plan.bytes), with_manifest=False)
        apply_patches(folder, PatchList(patches), RealDisk())
        system.sync_file_system(folder)  # a copy that has its name is complete, also after a power loss
    return destination
