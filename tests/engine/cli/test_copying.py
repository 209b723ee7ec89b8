"""Units of one store put into another."""

from __future__ import annotations

import json

from engine.cli import copying
from engine.cli.main import main


def copied(capsys, *arguments):
    assert main(["copy", *map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_an_empty_store_is_copied(tmp_path, capsys):
    (tmp_path / "source" / "commitlog").mkdir(parents=True)
    assert copied(capsys, tmp_path / "source", tmp_path / "copy")["units"] == 0
    assert copying.Copied(0, 0, 0, 0, 0, ()).units == 0
