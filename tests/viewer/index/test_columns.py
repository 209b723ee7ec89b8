"""Tables of index files, chains and steps: cells, shapes of verdicts, links and records."""

from __future__ import annotations

from engine.inspection.key_trace import TraceStep
from viewer.index.columns import MEANINGS, VERDICTS, chain_kind, file_kind, step_kind
from viewer.index.facts import ChainRow, FileRow

FILE = FileRow("2026", 4096, 1_700_000_000_000, 1_700_000_060_000, 0, 640, 5, 8, 20, 60, "by its length")


def column(kind, key):
    return next(item for item in kind.columns if item.key == key)


def test_a_file_s_offsets_are_links_and_its_record_has_the_header():
    kind = file_kind(lambda offset: ("log", offset))
    assert column(kind, "endPhyOffset").jump(FILE) == ("log", 640)
    assert column(kind, "beginPhyOffset").jump(FileRow("x", 0)) is None
    assert kind.record(FILE)["indexCount"] == 8
    assert kind.command(FILE)[:4] == ["storescope", "index", "STORE", "--file"]
    assert kind.look(FileRow("x", 5, trouble="too short")).mark == "error"
    assert kind.look(FILE) is None


def test_every_verdict_has_a_shape_and_a_step_s_a_meaning():
    assert set(MEANINGS) <= set(VERDICTS)
    kind = chain_kind(lambda offset: offset)
    for verdict in ("ok", "gone", "loop", "beyondCount"):
        row = ChainRow("f", 3, 7, 1, 640, 0, 1_700_000_000_000, 0, verdict, "T#K")
        assert kind.verdict(row)
    cut = ChainRow("f", 3, 1_234, verdict="cut")
    assert "entry 1,234" in kind.look(cut).words


def test_a_step_is_a_row_as_trace_gives_it():
    kind = step_kind(lambda offset: ("log", offset))
    slot = TraceStep("f", "slot", 3, 7, 99, None, None, 7, "match")
    entry = TraceStep("f", "entry", 3, 7, 99, 640, 1_700_000_000_000, 0, "collision", "T#other")
    assert column(kind, "entry").text(slot) == "3"
    assert column(kind, "key").text(slot) == "→ 7"
    assert column(kind, "key").text(entry) == "T#other"
    match = TraceStep("f", "entry", 3, 7, 99, 640, 1_700_000_000_000, 0, "match", None)
    assert column(step_kind(lambda offset: offset, "T#K"), "key").text(match) == "T#K", "it was the only empty row"
    assert column(kind, "phyOffset").jump(entry) == ("log", 640)
    assert kind.record(entry)["verdict"] == "collision"
