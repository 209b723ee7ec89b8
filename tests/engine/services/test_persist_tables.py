"""Changed tables are saved. A failure is reported once and retried."""

from __future__ import annotations

import logging
from typing import Any, cast

from engine.services.persist_tables import PERSIST_EVERY_MS, PersistTables


class Tables:
    def __init__(self) -> None:
        self.saved, self.error = 0, None

    def save(self) -> None:
        if self.error is not None:
            raise self.error
        self.saved += 1


def test_a_failure_is_reported_once_until_it_ends(caplog):
    tables = Tables()
    service = PersistTables(cast("Any", tables))
    assert service.step() == PERSIST_EVERY_MS
    tables.error = OSError(28, "No space left on device")
    with caplog.at_level(logging.WARNING):
        assert [service.step(), service.step()] == [PERSIST_EVERY_MS] * 2
    assert len(caplog.records) == 1
    assert "No space left" in (service.failure or "")
    tables.error = None
    service.step()
    assert (service.failure, tables.saved) == (None, 2)
