"""Tables fit the terminal in cells, text cannot control the terminal, and streams may have any encoding."""

from __future__ import annotations

import io
import json

import agree
import handmade_stores
import pytest
from commands import reading_commands

from engine.cli.output import (
    Column,
    Output,
    Progress,
    cell_width,
    escape_controls,
    format_cell,
    iso_time,
    shorten,
    size_text,
    time_left,
)


def table_lines(columns, rows, width, monkeypatch, markdown=False):
    """Return the lines of a table on a terminal of ``width`` cells."""
    monkeypatch.setenv("COLUMNS", str(width))
    stream = io.StringIO()
    out = Output(as_json=False, markdown=markdown, stream=stream)
    for row in rows:
        out.record(row, columns)
    out.flush()
    return stream.getvalue().splitlines()


NUMBERS = (Column("Physical offset", "at", "number"), Column("Topic", "topic"), Column("Stored", "time", "time"))


def test_numbers_are_right_aligned_and_words_left_aligned(monkeypatch):
    rows = [{"at": 7, "topic": "a", "time": None}, {"at": 1_234_567, "topic": "long topic", "time": None}]
    assert table_lines(NUMBERS, rows, 80, monkeypatch) == [
        "Physical offset  Topic       Stored",
        "              7  a",
        "      1,234,567  long topic",
    ]


def test_headers_use_two_lines_before_words_are_cut(monkeypatch):
    rows = [{"at": 7, "topic": "t" * 20, "time": None}]
    assert table_lines(NUMBERS, rows, 38, monkeypatch)[:2] == ["Physical  Topic                 Stored", "  offset"]


def test_words_lose_their_end_and_paths_their_beginning(monkeypatch):
    columns = (Column("Topic", "topic"), Column("File", "file", "path"))
    (_, row) = table_lines(columns, [{"topic": "t" * 40, "file": "/a/long/way/to/the/file"}], 24, monkeypatch)
    assert row == "ttttttttt…  …to/the/file"
    assert len(row) == 24


def test_prose_is_wrapped(monkeypatch):
    columns = (Column("Rule", "id", "plain"), Column("Finding", "what", "prose"))
    lines = table_lines(columns, [{"id": "X1", "what": "a sentence of several words that is long"}], 30, monkeypatch)
    assert lines == ["Rule  Finding", "  X1  a sentence of several", "      words that is long"]


def test_spare_columns_are_left_out_and_named(monkeypatch):
    columns = (Column("A", "a", "number"), Column("B", "b", "time", spare=1), Column("C", "c", "time", spare=2))
    lines = table_lines(columns, [{"a": 1, "b": 0, "c": 0}], 40, monkeypatch)
    assert lines[0].split() == ["A", "B"]
    assert lines[-1] == "-- left out for want of room: C"


def test_characters_of_two_cells_are_counted_as_two(monkeypatch):
    columns = (Column("Topic", "topic"), Column("N", "n", "number"))
    lines = table_lines(columns, [{"topic": "主题", "n": 1}, {"topic": "abcd", "n": 2}], 80, monkeypatch)
    assert lines[1:] == ["主题   1", "abcd   2"]
    assert [cell_width(line) for line in lines[1:]] == [8, 8]
    assert shorten("主题主题", 5) == "主题…"
    assert cell_width("e\u0301") == 1


def test_markdown_keeps_every_column_and_escapes_bars(monkeypatch):
    lines = table_lines(NUMBERS, [{"at": 1, "topic": "a|b", "time": None}], 10, monkeypatch, markdown=True)
    assert lines == ["| Physical offset | Topic | Stored |", "|--:|---|---|", "| 1 | a\\|b |  |"]


def test_rows_after_the_first_screens_are_aligned_too(monkeypatch):
    rows = [{"at": number * 5000, "topic": "t", "time": None} for number in range(400)]
    lines = table_lines(NUMBERS, rows, 80, monkeypatch)
    assert len({line.index("t", 5) for line in lines[1:]}) == 1


CELLS = [
    pytest.param(None, "number", "", id="nothing"),
    pytest.param(1234567, "number", "1,234,567", id="a number"),
    pytest.param(True, "number", "yes", id="yes"),
    pytest.param(-(1 << 63), "time", str(-(1 << 63)), id="a time that no calendar has"),
    pytest.param(1536, "bytes", "1.5 KiB", id="bytes"),
    pytest.param(["a", "b\n"], "text", "a b\\x0a", id="a list"),
    pytest.param({"a": "\x1b"}, "text", '{"a": "\\\\u001b"}'.replace("\\\\", "\\"), id="an object"),
]


@pytest.mark.parametrize(("value", "kind", "text"), CELLS)
def test_a_cell(value, kind, text):
    assert format_cell(value, kind) == text


def test_times_have_a_zone():
    assert iso_time(1_700_000_000_123)[23:].startswith(("+", "-"))
    assert iso_time(1_700_000_000_123)[10] == " "


def test_every_time_on_a_terminal_has_the_same_form_and_data_stays():
    """``check`` printed the times of findings in UTC with a T and a Z, and those of queues in the local zone."""
    stream = io.StringIO()
    out = Output(as_json=False, stream=stream)
    utc_time, local_time = "2023-11-14T22:13:20.123Z", iso_time(1_700_000_000_123)
    out.line(f"stored {utc_time}")
    out.record({"message": f"since {utc_time}"}, (Column("Finding", "message", "prose"),))
    out.flush()
    assert stream.getvalue().count(local_time) == 2
    out.fields([("body", utc_time)], are_data=True)
    assert stream.getvalue().endswith(f"body  {utc_time}\n")


def test_sizes():
    assert [size_text(size) for size in (0, 1023, 1024, 40_802_189_312)] == ["0 B", "1,023 B", "1.0 KiB", "38.0 GiB"]


SENTENCES = ("--", "Bytes", "Size", "Store ")
STEERING = ["\x1b[2J", "\x9b31m", "\r\n", "\x7f", "\u202e", "\u2028", "\x00", "\udcff", "\u200f"]


@pytest.mark.parametrize("text", STEERING)
def test_no_text_controls_the_terminal(text):
    assert escape_controls(f"a{text}b").isprintable()
    stream = io.StringIO()
    out = Output(as_json=False, stream=stream)
    out.line(f"a{text}b")
    out.fields([("name", text)])
    out.record({"a": text}, (Column("A", "a"),))
    out.flush()
    assert all(line.isprintable() for line in stream.getvalue().split("\n"))


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_json_is_utf8_whatever_the_terminal_takes(encoding):
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding)
    out = Output(as_json=True, stream=stream)
    record = {"type": "x", "a": "主题 😀", "b": "\udcff"}
    out.record(record)
    out.flush()
    assert json.loads(raw.getvalue().decode("utf-8")) == record


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_tables_are_written_in_any_encoding(encoding):
    raw = io.BytesIO()
    out = Output(as_json=False, stream=io.TextIOWrapper(raw, encoding=encoding))
    out.record({"a": "主题 😀 \udcff"}, (Column("A", "a"),))
    out.flush()
    assert raw.getvalue().isascii() == (encoding != "utf-8")


LONG = {"message", "queryMsgById", "queryMsgByOffset", "config", "where", "recover", "compat", "trace", "space"}
"""Commands that print sentences, and values that are as long as they are."""


@pytest.mark.full_form(keep=3)
@pytest.mark.golden
@pytest.mark.parametrize("name", ["broker-orders", "crash-power-5.3.3", "ipv6-and-unicode-5.3.3"])
@pytest.mark.parametrize("width", [80, 120])
def test_every_table_fits_the_terminal(golden, monkeypatch, name, width):
    monkeypatch.setenv("COLUMNS", str(width))
    for arguments in reading_commands(golden(name)):
        if arguments[0] in LONG:
            continue
        _, out, _ = agree.command(*arguments)
        lines = [line for line in out.splitlines() if "  " in line.strip() and not line.startswith(SENTENCES)]
        assert [line for line in lines if cell_width(line) > width] == [], arguments


def test_a_store_full_of_hostile_names_prints_as_plain_text(tmp_path):
    store = handmade_stores.HandmadeStore(log_size=1 << 16)
    hostile = "a\x1b[2J\x9b31m\r\nb\u202e"
    for topic in (hostile, "t" * 120):
        store.put(topic, tags=hostile, keys=hostile, more={"x\x1b]0;title\x07": "\x1b[31m"})
    path = store.write(tmp_path / "store")
    (path / "config").mkdir()
    (path / "config" / "topics.json").write_text(
        json.dumps({"topicConfigTable": {hostile: {"topicName": hostile}}}, ensure_ascii=False)
    )
    unit = store.units[0]
    for arguments in (
        ["info", path],
        ["units", path],
        ["queue", path, hostile, 0],
        ["message", path, unit.offset],
        ["where", path, unit.keys[0]],
        ["config", path],
        ["check", path],
        ["trace", path, hostile, hostile],
        ["groups", path],
        ["positions", path],
        ["units", tmp_path / hostile],
        ["queue", path, hostile + "x", 0],
    ):
        _, out, err = agree.command(*arguments)
        assert all(line.isprintable() for line in (out + err).split("\n")), arguments


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "0 s left"),
        (99.4, "99 s left"),
        (119, "about 2 min left"),
        (3_540, "about 59 min left"),
        (3_580, "about 1 h 0 min left"),
        (4_790, "about 1 h 20 min left"),
    ],
)
def test_remaining_time_is_printed_in_rounded_units(seconds, text):
    assert time_left(seconds) == text


def test_long_work_shows_progress_on_a_terminal(monkeypatch):
    """A recovery plan reads the whole log, and learns the total only when it begins."""
    screen = io.StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: True)
    monkeypatch.setattr("sys.stderr", screen)
    clock = iter((0.0, 0.1, 1.0, 2.0))
    monkeypatch.setattr("engine.cli.output.time.monotonic", lambda: next(clock))
    with Progress("recover", 1) as progress:
        progress.update(1 << 20, 1 << 30)
        progress.update(1 << 22, 1 << 30)
        progress.update(1 << 23, 1 << 30)
    first_line, second_line = screen.getvalue().split("\r\x1b[K")[1:3]
    assert first_line.endswith("0%  4.0 MiB/s  about 4 min left")
    assert second_line.endswith("1%  4.0 MiB/s  about 4 min left")
