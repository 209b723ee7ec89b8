"""Consumer offsets that lie beyond their queues (CF02): group by group, and whether it is the queue that is short."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from engine.codec import config_tables
from engine.inspection.check.places import Span
from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.tables import read_table
from engine.rules import catalogue
from engine.rules.findings import Finding

MOST = 20


class Beyond(NamedTuple):
    """A queue in which a group stands beyond the end."""

    topic: str
    queue_id: int
    offset: int
    end: int

    @property
    def words(self) -> str:
        return f"{self.topic}/{self.queue_id}: {self.offset:,} of {self.end:,}"


def findings(
    store: StoreSnapshot, short: Mapping[tuple[str, int], int], broken: Iterable[Span] = ()
) -> Iterator[Finding]:
    """CF02 a group; ``short`` says of queues that lack units where they would end: there the group is right. Notes in
    the ``broken`` places which groups stand there.
    """
    broken = [span for span in broken if span.queues]
    if store.paths is None:
        return
    shown = 0
    for name in ("consumerOffset.json", "lmqConsumerOffset.json"):
        table = read_table(store, name)
        if table is None:
            continue
        path = str(store.paths.config / (table.file or name))
        groups: dict[str, list[Beyond]] = {}
        for row in config_tables.consumer_offsets(table.value).rows:
            groups.setdefault(row.group, []).extend(_beyond(store, row.topic, row.offsets))
            for span in broken:
                for queue_id, offset in sorted(row.offsets.items()):
                    span.stand(row.group, f"{row.topic}/{queue_id}", offset)
        for group, beyond in groups.items():
            right = [one for one in beyond if one.offset <= short.get((one.topic, one.queue_id), -1)]
            for queues, cause in ((right, "CQ10"), ([one for one in beyond if one not in right], None)):
                if queues and shown < MOST:
                    shown += 1
                    yield _told(store, path, group, queues, cause)


def _beyond(store: StoreSnapshot, topic: str, offsets: Mapping[int, int]) -> Iterator[Beyond]:
    for queue_id, offset in sorted(offsets.items()):
        queue = store.queue(topic, queue_id)
        if queue is None:
            continue
        # a table is written after the queue it speaks of, so a copy of a running store may be ahead
        last = max(queue.max_offset, queue.raw_end // queue.unit_size if queue.kind == "simple" else 0)
        if offset > last:
            yield Beyond(topic, queue_id, offset, last)


def _told(store: StoreSnapshot, path: str, group: str, queues: list[Beyond], cause: str | None) -> Finding:
    first = queues[0]
    text = (
        f"Group {group} will ask {first.topic}/{first.queue_id} for offset {first.offset:,}, it ends at {first.end:,}"
    )
    if len(queues) > 1:
        text += f"; {len(queues) - 1:,} more queues of the group end before its offset"
    evidence = {
        "expected": first.end,
        "found": first.offset,
        "group": group,
        "topic": first.topic,
        "queueId": first.queue_id,
        "queues": [one.words for one in queues[:MOST]],
    }
    return catalogue.CF02.found(text, path, None, evidence, "note" if store.abort else None, caused_by=cause)
