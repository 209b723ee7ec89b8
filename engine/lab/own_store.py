"""Somebody's own store, opened for writing: what its recovery cuts, deletes or overwrites is kept beside it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from engine.config import MessageStoreConfig
from engine.layout import StorePaths
from engine.mapped.disk import RealDisk
from engine.mapped.keeping import Keeper, KeepingDisk
from engine.mapped.kept_undo import take_back
from engine.message_store import MessageStore
from engine.rules.unit_check import Release
from engine.store.recovery import load_source
from engine.store.recovery import planning as recovery


class OwnStore:
    """``store`` is open until :meth:`close`; ``kept`` is the folder where what is changed until then is kept, None
    where opening leaves log, queues and index as they are.

    Raises what :class:`MessageStore` raises, and :class:`engine.mapped.keeping.CannotKeep`; then nothing was changed.
    """

    def __init__(self, path: Path, config: MessageStoreConfig, like: Release) -> None:
        self._keeper = _keeper(path, config, like)
        self._disk = KeepingDisk(self._keeper) if self._keeper is not None else None
        try:
            self.store = MessageStore(path, config, like=like, disk=self._disk)
        except BaseException as error:
            if self._disk is not None and self._keeper is not None:
                self._disk.close()
                take_back(self._keeper, error)
            raise
        self.kept = self._keeper.folder if self._keeper is not None else None

    def close(self) -> None:
        """As a broker that ends in order; what is kept can be put back from now on."""
        try:
            self.store.close()
        finally:
            if self._disk is not None and self._keeper is not None:
                self._disk.close()
                self._keeper.finish()


def _keeper(path: Path, config: MessageStoreConfig, like: Release) -> Keeper | None:
    paths = StorePaths(path)
    with closing(RealDisk()) as disk:
        plan = recovery.plan(load_source.source(paths, config, disk), like)
    if plan.changes_nothing or plan.empty_log is not None or not plan.will_start:
        return None
    return Keeper(path, "opening for writing", load_source.log_folders(paths, config))
