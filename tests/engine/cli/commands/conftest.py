"""A small store with known contents, and a helper that runs commands on it the way scripts do."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import agree
import contract_records
import pytest
from handmade_stores import HandmadeStore


@dataclass
class StoreCommands:
    """Runs commands on ``store``: twelve messages, Orders and Paid in turn, all in queue 0, keys K0 to K11."""

    store: HandmadeStore
    path: Path

    def __call__(self, command: str, *arguments: object, status: int = 0) -> list[dict[str, Any]]:
        """Return the records of ``storescope COMMAND STORE ARGUMENTS --json``, each checked against the documented
        fields.
        """
        exit_code, out, err = agree.command(command, self.path, *arguments, "--json")
        assert (exit_code, "Traceback" in err) == (status, False), err
        records = [agree.json.loads(line) for line in out.splitlines()]
        for record in records:
            assert not contract_records.complaints(record), record
        return records

    def text(self, command: str, *arguments: object, status: int = 0) -> str:
        """Return the text that the command prints for a user."""
        exit_code, out, err = agree.command(command, self.path, *arguments)
        assert (exit_code, "Traceback" in err) == (status, False), err
        return out + err


@pytest.fixture(scope="module")
def storescope(tmp_path_factory: pytest.TempPathFactory) -> StoreCommands:
    """``storescope("queue", "Orders", 0)``: the records of a command over one small store."""
    store = HandmadeStore()
    for number in range(12):
        store.put(topic=("Orders", "Paid")[number % 2], tags=f"T{number % 3}", keys=f"K{number}")
    return StoreCommands(store, store.write(tmp_path_factory.mktemp("commands") / "store"))
