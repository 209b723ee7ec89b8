"""Logs that are dispatched into a new place, in each possible way, and the content of the files afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal

from simulated_disk import SimulatedDisk

from engine.codec.columns import UnitColumns, scan_block
from engine.codec.topic_table import TopicTable
from engine.config import MessageStoreConfig
from engine.files.layout import StorePaths
from engine.mapped.disk import Disk
from engine.rules import unit_check
from engine.rules.unit_check import Request, Rules
from engine.services.rebuild import Rebuild
from engine.store.consume_queue_store import ConsumeQueueStore
from engine.store.dispatcher import Dispatcher
from engine.store.index_service import IndexService

ROOT = Path("/store")
TREES = ("consumequeue", "consumequeue_ext", "batchconsumequeue")
Way = Literal["singly", "by block", "rebuilt"]
WAYS: tuple[Way, ...] = ("singly", "by block", "rebuilt")


class DispatchTarget:
    """Queues and index of a store without other files; ``now`` is the clock, ms."""

    def __init__(
        self,
        config: MessageStoreConfig,
        disk: Disk | None = None,
        root: Path = ROOT,
        batch_topics: frozenset[str] = frozenset(),
        bit_map: Callable[[Request], bytes] | None = None,
        tag_entries: bool = False,
    ) -> None:
        self.now = 1_700_000_000_000
        self.disk = SimulatedDisk() if disk is None else disk
        self.root = root
        self.config = config
        self.full: list[str] = []
        self.bit_map = bit_map
        self.queues = ConsumeQueueStore(StorePaths(root), config, self.disk, batch_topics.__contains__)
        self.index = IndexService(
            StorePaths(root),
            config,
            self.disk,
            lambda: self.now,
            lambda file: self.full.append(file.name),
            tag_entries=tag_entries,
        )
        self.dispatcher = Dispatcher(self.queues, self.index, config, bit_map=bit_map)
        self.rules = Rules(delay_levels=config.delay_levels())

    def dispatch(self, log: bytes, way: Way = "by block", rows: int = 4096, base: int = 0) -> None:
        """Dispatch every unit of ``log``; ``rows`` is the size of the blocks."""
        if way == "singly":
            for request in requests(log, self.rules):
                self.dispatcher.dispatch(request)
        elif way == "by block":
            topics = TopicTable()
            for columns in blocks(log, rows, topics, base):
                self.dispatcher.dispatch_block(columns, topics)
        else:
            topics = TopicTable()
            with Rebuild(self.queues, self.index, self.config, bit_map=self.bit_map) as rebuild:
                for columns in blocks(log, rows, topics, base):
                    rebuild.take(columns, topics)
                rebuild.finish()

    def files(self) -> dict[str, bytes]:
        """Return every queue file by its path below the root, and index files by their order."""
        disk = self.disk
        assert isinstance(disk, SimulatedDisk)
        results = {str(Path(path).relative_to(self.root)): bytes(node.live) for path, node in disk._nodes.items()}
        return numbered(results)

    def entries(self, topic: str, queue_id: int) -> list[tuple[int, ...]]:
        """Return the entries of a simple queue."""
        queue = self.queues.queue(topic, queue_id)
        assert queue is not None
        return queue.read(0, queue.max_offset).tolist()


def blocks(log: bytes, rows: int, topics: TopicTable, base: int = 0) -> Iterable[UnitColumns]:
    """Yield ``log`` as columns; always the same arrays."""
    columns, position = UnitColumns(rows), 0
    while True:
        result = scan_block(log, len(log), base, position, columns, topics, False)
        if not columns.count:
            return
        yield columns
        position = result.next_position


def requests(log: bytes, rules: Rules) -> Iterable[Request]:
    """Yield the dispatch request of each unit of ``log``."""
    position = 0
    while position < len(log):
        answer = unit_check.check(log, position, len(log) - position, rules, body=False)
        assert isinstance(answer, Request), answer
        yield answer
        position += answer.size


def stored(root: Path) -> dict[str, bytes]:
    """Return queues and index of the store at ``root`` in the shape of :meth:`DispatchTarget.files`."""
    paths = [path for name in (*TREES, "index") for path in sorted((root / name).rglob("*")) if path.is_file()]
    return numbered({str(path.relative_to(root)): path.read_bytes() for path in paths})


def numbered(files: dict[str, bytes]) -> dict[str, bytes]:
    """Return index files by their order: their names are clock times."""
    index = sorted(name for name in files if name.startswith("index/"))
    names = {name: f"index/{number}" for number, name in enumerate(index)}
    return {names.get(name, name): data for name, data in files.items()}
