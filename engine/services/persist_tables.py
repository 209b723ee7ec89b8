"""The service that saves configuration tables which changed."""

from __future__ import annotations

import logging

from engine.store.config_tables import ConfigTables

_log = logging.getLogger(__name__)


PERSIST_PAUSE_MS = 10_000.0
PERSIST_EVERY_MS = 5000.0


class PersistTables:
    """Saves tables that changed. A failure is logged once and retried; the old table stays."""

    name = "PersistTablesService"

    def __init__(self, tables: ConfigTables) -> None:
        self.failure: str | None = None
        self._tables = tables

    def step(self) -> float:
        """Save what changed."""
        try:
            self._tables.save()
            self.failure = None
        except OSError as error:
            if self.failure is None:
                _log.warning("config tables cannot be written: %s", error)
            self.failure = str(error)
        return PERSIST_EVERY_MS
