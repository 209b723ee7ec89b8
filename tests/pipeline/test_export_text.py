"""Rows of an export as JSON lines or CSV, written in this process: the same texts as those of Spark's own writers."""

from __future__ import annotations

import base64
import json

from engine.pipeline.export import COLUMNS
from engine.pipeline.export_text import LINES

ROW = dict.fromkeys(name for name, _ in COLUMNS)
BYTES = next(name for name, kind in COLUMNS if kind == "binary")


def test_json_leaves_nothing_out_and_has_bytes_in_base64():
    line = LINES["json"]({**ROW, BYTES: b"\0body", "properties": [("K", "v"), ("A", "€")]})
    record = json.loads(line)
    assert list(record) == [name for name, _ in COLUMNS]
    assert (base64.b64decode(record[BYTES]), record["properties"]) == (b"\0body", {"K": "v", "A": "€"})
    assert line.endswith("\n")
    assert "€" in line


def test_csv_quotes_what_needs_it_and_breaks_long_bytes_into_lines():
    names = [name for name, _ in COLUMNS]
    cells = LINES["csv"]({**ROW, "topic": 'a "b", c', "properties": [("K", "v")]}).rstrip("\n")
    assert '"a ""b"", c"' in cells
    assert '"{""K"":""v""}"' in cells
    assert LINES["csv"](ROW) == "," * (len(names) - 1) + "\n"
    assert "\r\n" in LINES["csv"]({**ROW, BYTES: bytes(100)})
