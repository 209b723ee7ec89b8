"""``bench append``: both ways of building a message agree, C writes the same bytes, and every row has figures."""

from __future__ import annotations

import shutil

import pytest
from put_logs import PutLog

from engine.bench import append
from engine.bench.yardstick import compile_library
from engine.cli.main import main
from engine.codec import properties


@pytest.fixture
def small(monkeypatch) -> None:
    monkeypatch.setattr(append, "PUTS_BY_BODY_BYTES", {200: 192})
    monkeypatch.setattr(append, "COLUMN_ROWS", 64)


def test_text_and_map_make_one_message() -> None:
    text, unit = append.by_text(77, b"x"), append.by_map(77, b"x")
    assert properties.decode(text.properties_raw) == unit.properties
    assert text.changed(properties_raw=None) == unit.changed(properties=None)


@pytest.mark.usefixtures("small")
def test_c_writes_the_bytes_that_ours_writes(tmp_path) -> None:
    put = PutLog(tmp_path)
    put.now = append.BORN_MS
    columns = append.make_columns(50)
    assert put.log.append_columns(columns).ok
    library = compile_library(append.SOURCE, tmp_path)
    assert (library is None) == (shutil.which("cc") is None)
    if library is not None:
        target = bytearray(put.log.wrote)
        assert append.write_plainly(library, columns, target) == len(target)
        assert bytes(target) == b"".join(put.bytes())


@pytest.mark.usefixtures("small")
def test_every_row_has_its_figures(tmp_path) -> None:
    rows = list(append.run("append", tmp_path, repeats=1, size=1 << 20))
    assert [(row["batch"], row["properties"], row["built"]) for row in rows[:-1]] == [
        (1, "text", True),
        (1, "map", True),
        (64, "text", False),
        (64, "text", True),
        (64, "map", False),
        (64, "map", True),
    ]
    assert all(row["messagesPerSecond"] > 0 and row["messagesPerCpuSecond"] > 0 for row in rows[:-1])
    assert rows[-1]["puts"] == 64
    assert (rows[-1]["ratio"] is None) == (shutil.which("cc") is None)
    assert not list(tmp_path.glob("storescope-bench-*")), "stores are deleted"


def test_another_name_is_refused() -> None:
    with pytest.raises(KeyError):
        next(append.run("scan"))


@pytest.mark.usefixtures("small")
def test_the_command_prints_a_line_a_figure(tmp_path, capsys) -> None:
    assert main(["bench", "append", "--folder", str(tmp_path), "--repeats", "1", "--size", "1048576", "--json"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 7
    assert main(["bench", "append", "--folder", str(tmp_path), "--repeats", "1", "--size", "1048576"]) == 0
    assert "64 messages a call" in capsys.readouterr().out
