"""Missing, damaged and unread parts of the log form one list, whatever reported them."""

from __future__ import annotations

from engine.rules.findings import Finding
from viewer.look.broken import UnreadableRange, broken_in, bytes_missing, bytes_within, missing_in
from viewer.widgets.log_line import LogLine, reaching

FILES = ((0, 100, "/s/commitlog/0"), (200, 300, "/s/commitlog/200"), (300, 360, "/s/commitlog/300"))


def finding(rule: str, offset: int, **evidence: int) -> Finding:
    return Finding(rule, "error", "log", "/s/commitlog/0", offset, "", dict(evidence), (), "")


def test_a_missing_file_is_the_range_between_its_neighbours() -> None:
    assert missing_in((start, end) for start, end, _ in FILES) == [UnreadableRange(100, 200, "missing")]
    assert bytes_missing((start, end) for start, end, _ in FILES) == 100
    assert missing_in([]) == []


def test_a_missing_file_after_the_last_comes_from_a_finding() -> None:
    broken = broken_in(FILES, (finding("CL07", 360, bytes=100), finding("CL07", 100, bytes=100)), (), set())
    assert broken == (UnreadableRange(100, 200, "missing"), UnreadableRange(360, 460, "missing"))
    assert broken_in((), (finding("CL07", 360, bytes=100),), (), set()) == ()
    line = LogLine(0, 350, 360)
    assert reaching(line, broken) == LogLine(0, 460, 460)
    assert reaching(line, broken[:1]) == line


def test_damage_from_findings_and_count_is_listed_once() -> None:
    broken = broken_in(
        FILES,
        (finding("CL01", 10, bytes=5), finding("CQ01", 40), finding("CL03", 50, bodyOffset=60, bodyLength=20)),
        ((10, 15), (70, 75), (100, 200)),
        set(),
    )
    assert broken == (
        UnreadableRange(10, 15, "damaged"),
        UnreadableRange(50, 80, "damaged"),
        UnreadableRange(70, 75, "damaged"),
        UnreadableRange(100, 200, "missing"),
    )


def test_an_unreadable_file_is_neither_missing_nor_damaged() -> None:
    broken = broken_in(FILES, (), (), {"/s/commitlog/300"})
    assert broken == (UnreadableRange(100, 200, "missing"), UnreadableRange(300, 360, "unread"))
    assert "cannot be read" in broken[1].words


def test_bytes_of_a_kind_within_a_range() -> None:
    broken = (UnreadableRange(10, 20, "missing"), UnreadableRange(30, 40, "unread"), UnreadableRange(50, 60, "damaged"))
    assert bytes_within(broken, 0, 100, {"missing"}) == 10
    assert bytes_within(broken, 15, 35, {"missing", "unread"}) == 10
    assert bytes_within(broken, 50, 60, {"missing", "unread"}) == 0
