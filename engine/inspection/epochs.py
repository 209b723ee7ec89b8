"""The epoch table of a store in controller mode (docs/formats/epochs.md): as a broker loads it, and as positions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.codec.config_tables import BACKUP
from engine.codec.epoch_file import Epoch, EpochFile, decode
from engine.sentences import sentence

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot


@dataclass(frozen=True, slots=True)
class EpochTable:
    """The files ``path`` and its ``.bak`` (None: there is none), and the epochs that a broker loads from them."""

    path: Path
    main: EpochFile
    backup: EpochFile | None

    @property
    def epochs(self) -> tuple[Epoch, ...]:
        """The rows of the file, else of its ``.bak``; none if a broker loads neither."""
        if not self.main.problem:
            return self.main.epochs
        is_backup_used = not self.main.stops_start and self.backup is not None and not self.backup.problem
        return self.backup.epochs if is_backup_used and self.backup is not None else ()

    def record(self) -> list[dict[str, int]]:
        """The ``epochs`` of a ``store`` record."""
        return [{"epoch": row.epoch, "startOffset": row.start_offset} for row in self.epochs]

    @property
    def words(self) -> str:
        """The newest epochs with their offsets, for one line."""
        shown = [sentence("{n:,} from {offset:,}", n=row.epoch, offset=row.start_offset) for row in self.epochs[-6:]]
        further = ["…"] if len(self.epochs) > len(shown) else []
        return ", ".join([*further, *shown])


def read_epochs(store: StoreSnapshot) -> EpochTable | None:
    """The store's epoch table; None without one. Raises :class:`engine.errors.CannotRead`."""
    if store.paths is None:
        return None
    path = store.paths.epoch_file
    data = store.small_file(path)
    if data is None:
        return None
    backup = store.small_file(path.with_name(path.name + BACKUP))
    return EpochTable(path, decode(data), decode(backup) if backup is not None else None)
