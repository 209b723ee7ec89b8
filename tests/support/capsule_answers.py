"""What commands answer about a store, in a form in which a store and its capsule can be compared."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from engine.cli.main import main
from engine.codec.message import Unit
from engine.errors import StoreError
from engine.inspection import open_store

Answer = tuple[int, list[str], str]
OF_PLACE = ("A capsule of", "A store on another")
"""How notes begin that say where the store is read."""
OF_BODIES = ("body", "bodySha256")
WHOLE_STORE = (
    ["info"],
    ["check"],
    ["recover", "--plan"],
    ["units"],
    ["groups"],
    ["positions"],
    ["waiting"],
    ["config"],
    ["index", "--entries"],
    ["timeline"],
    ["histogram"],
    ["sql", "SELECT * FROM units ORDER BY physicalOffset"],
)


def questions(path: Path, unit_count: int = 1, queue_count: int = 2) -> Iterator[list[str]]:
    """Yield command lines without the store: about all of it, about a few queues, and about a few units."""
    yield from WHOLE_STORE
    queues: list[tuple[str, int]] = []
    units: list[Unit] = []
    with open_store(path) as store:
        with contextlib.suppress(StoreError):
            queues = [(topic, number) for topic, by_number in store.topics().items() for number in by_number]
        with contextlib.suppress(StoreError):
            units = list(islice((item for item in store.log.walk() if isinstance(item, Unit)), 2000))
    for topic, number in queues[:queue_count]:
        yield ["queue", topic, str(number), "--resolve"]
    for unit in units[:: max(len(units) // unit_count, 1)][:unit_count]:
        yield ["where", f"{unit.topic}/{unit.queue_id}/{unit.queue_offset}"]
        yield ["where", unit.offset_msg_id]
        for key in filter(None, (unit.unique_key, *unit.keys)):
            yield ["where", key]
            yield ["trace", unit.topic, key]
    yield ["where", "nobody"]


def answer(path: Path, question: Sequence[str]) -> Answer:
    """Return exit code, records, and errors, without the path of the store, and without what a capsule lacks."""
    command, *arguments = question
    output, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        code = main([command, str(path), *arguments, "--json", "--quiet"])
    records = []
    short_path = f"{path.parent.name}/{path.name}"  # of what lies beside the store
    for line in output.getvalue().replace(str(path), "STORE").replace(short_path, "STORE").splitlines():
        record = json.loads(line)
        if record["type"] == "store":
            record["notes"] = [note for note in record["notes"] if not note.startswith(OF_PLACE)]
        records.append(json.dumps({name: value for name, value in record.items() if name not in OF_BODIES}))
    return code, records, errors.getvalue().replace(str(path), "STORE")


def differences(store: Path, folder: Path, unit_count: int = 1, queue_count: int = 2) -> list[str]:
    """Make the capsule in ``folder``, and return the questions that it answers in another way, with the first records
    that differ. It has the name of the store, which some answers contain.
    """
    capsule = folder / store.name
    assert main(["capsule", str(store), "-o", str(capsule), "--quiet", "--leave-out-unread"]) in {0, 3}
    different = []
    for question in questions(store, unit_count, queue_count):
        expected, actual = answer(store, question), answer(capsule, question)
        if expected != actual:
            pairs = zip(expected[1], actual[1], strict=False)
            first = next((pair for pair in pairs if pair[0] != pair[1]), (expected[::2], actual[::2]))
            different.append(f"{' '.join(question)}: {first}")
    return different
