"""Facts about the units of a handmade store, without a capsule."""

from __future__ import annotations

from handmade_stores import HandmadeStore

from engine.capsule.log_facts import LogBlock, LogFacts, decode_facts


def log_facts(handmade: HandmadeStore, unit_count: int = 5) -> LogFacts:
    """Return the facts about the units of ``handmade``, in blocks of ``unit_count`` units."""
    blocks = []
    for start in range(0, len(handmade.log), handmade.log_size):
        units = [
            unit for unit in handmade.units if start <= unit.offset - handmade.first_offset < start + handmade.log_size
        ]
        for run in (units[n : n + unit_count] for n in range(0, len(units), unit_count)):
            length = run[-1].offset + run[-1].size - run[0].offset
            blocks.append(LogBlock(run[0].offset, length, 0, run[0].offset - handmade.first_offset))
    return LogFacts(blocks, lambda block: decode_facts(handmade.log[block.position :][: block.length], block.offset))
