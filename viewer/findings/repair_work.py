"""Plan repairs, write a mended copy, and mend the store itself, for the repair window. No Qt.

A copy grows under a hidden name beside its place: a stop at any moment leaves nothing behind. What the mend of the
store itself changes is saved beside the store first, and a stop takes it back.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import StoreError
from engine.files.atomic_file import write_atomically
from engine.patching.patches import Patch, PatchList
from viewer.findings.recovery_trial import config_of_copy

if TYPE_CHECKING:
    from engine.config import MessageStoreConfig
    from engine.mapped.backup import BackupJournal
    from engine.repair.mend_in_place import MendedStore
    from engine.repair.repair_plan import RepairPlan, State
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


def judge(control: Control, path: Path, config: MessageStoreConfig | None, patches: tuple[Patch, ...]) -> State:
    """Return what check and the next starts say of the store as ``patches`` would leave it.

    Raises BadPatch if a patch does not fit, StoreError, OSError, and what ``control.check`` raises.
    """
    from engine.inspection.snapshot import open_store
    from engine.inspection.written_release import require_release
    from engine.repair.repair_plan import judge_patched

    control.report(0, None)
    with open_store(path, config) as store:
        release = require_release(store)
    return judge_patched(path, config, release, patches, cancel=_Stop(control), progress=control.report)


def open_patches(path: Path, source: Path) -> tuple[Patch, ...]:
    """Read the patches in ``source``, and check that they fit the store at ``path``. Raises BadPatch, OSError."""
    from engine.patching.apply import check_patches
    from engine.patching.patches import loads

    patches = loads(source.read_bytes())
    check_patches(path, patches)
    return tuple(patches)


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


def refusal_to_write(path: Path, config: MessageStoreConfig | None) -> str:
    """Return why the store's files may not be changed, "" if they may. Takes no lock, writes nothing."""
    from engine.inspection.snapshot import open_store
    from engine.repair.mend_in_place import refuse_to_write

    try:
        with open_store(path, config) as store:
            refuse_to_write(store)
    except (StoreError, OSError) as error:
        return str(error)
    return ""


def mend(control: Control, path: Path, config: MessageStoreConfig | None, patches: Sequence[Patch]) -> MendedStore:
    """Make the changes of ``patches`` in the store itself; the old bytes are saved in a folder beside it.

    Raises StoreError, OSError, and what ``control.check`` raises; then the store is as it was.
    """
    from engine.repair.mend_in_place import mend_in_place

    def progress(done: int, total: int) -> None:
        control.check()
        control.report(done, total)

    control.check()
    return mend_in_place(path, config, patches, progress)


def restore(control: Control, path: Path, backup: BackupJournal) -> None:
    """Take back what a command changed in the store at ``path``. It may be repeated if it was ended in the middle.

    Raises StoreError, OSError; if the store has changed since, before anything is written.
    """
    from engine.mapped import undo

    control.report(0, None)
    undo.restore(backup, path)


def save_patches(patches: Sequence[Patch], target: Path) -> None:
    """Write the patches as JSON; the file appears when it is complete. Raises ``OSError``."""
    write_atomically(target, PatchList(patches).dumps())
