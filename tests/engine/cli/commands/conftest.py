"""A small store of which every byte is known, and its commands asked as scripts ask them."""

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
    """``made`` says what was put: twelve messages, Orders and Paid in turn, all in queue 0, keys K0 to K11."""

    made: HandmadeStore
    path: Path

    def __call__(self, command: str, *arguments: object, status: int = 0) -> list[dict[str, Any]]:
        """The records of ``storescope COMMAND STORE ARGUMENTS --json``, each with all that scripts rely on."""
        ended, out, err = agree.command(command, self.path, *arguments, "--json")
        assert (ended, "Traceback" in err) == (status, False), err
        records = [agree.json.loads(line) for line in out.splitlines()]
        for record in records:
            assert not contract_records.complaints(record), record
        return records

    def words(self, command: str, *arguments: object, status: int = 0) -> str:
        """What a person is shown."""
        ended, out, err = agree.command(command, self.path, *arguments)
        assert (ended, "Traceback" in err) == (status, False), err
        return out + err


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> StoreCommands:
    """``asked("queue", "Orders", 0)``: the records of a command over one small store."""
    store = HandmadeStore()
    for number in range(12):
        store.put(topic=("Orders", "Paid")[number % 2], tags=f"T{number % 3}", keys=f"K{number}")
    return StoreCommands(store, store.write(tmp_path_factory.mktemp("asked") / "store"))
