"""What can be mended in a store, and a mended copy of it. No Qt.

The store is only read. The copy grows under a hidden name beside its place: a stop at any moment leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engine.files.atomic_file import write_atomically
from engine.patching.patches import Patch, PatchList
from viewer.findings.recovery_trial import config_of_copy

if TYPE_CHECKING:
    from engine.config import MessageStoreConfig
    from engine.repair.repair_plan import RepairPlan
    from viewer.runtime.control import Control


def plan(control: Control, path: Path, config: MessageStoreConfig | None, names: tuple[str, ...]) -> RepairPlan:
    """Work out what can be mended in the store at ``path`` by the repairs ``names``; by all of them without names.

    The starts are those of the release that seems to have written the store. Raises StoreError, OSError, and what
    ``control.check`` raises.
    """
    from engine.inspection.snapshot import open_store
    from engine.inspection.written_release import require_release
    from engine.repair.repair_plan import plan_repairs

    control.report(0, None)
    with open_store(path, config) as store:
        release = require_release(store)
    return plan_repairs(path, config, release, only=names, cancel=_Stop(control), progress=control.report)


class _Stop:
    """The control as the check asks it. It raises: from a part of the findings nothing is to be concluded."""

    def __init__(self, control: Control) -> None:
        self._control = control

    def is_set(self) -> bool:
        self._control.check()
        return False


def mend_copy(
    control: Control, path: Path, config: MessageStoreConfig | None, patches: Sequence[Patch], target: Path
) -> Path:
    """Copy the store at ``path`` to ``target``, make the changes of ``patches`` there, and return ``target``.

    ``target`` is absent or an empty directory outside of the store. Raises StoreError, OSError, and what
    ``control.check`` raises; then the copy is removed.
    """
    from engine.repair.mended_copy import copy_mended

    config_of_copy(path, config)  # raises if a part of the store lies elsewhere

    def progress(done: int, total: int) -> None:
        control.check()
        control.report(done, total)

    control.check()
    return copy_mended(path, target, patches, progress)


def save_patches(patches: Sequence[Patch], target: Path) -> None:
    """Write the patches as JSON; the file appears when it is complete. Raises ``OSError``."""
    write_atomically(target, PatchList(patches).dumps())
