"""``bench recover`` measures whole recoveries and leaves nothing but the logs it works on."""

from __future__ import annotations

import pytest

from engine.bench import recover
from engine.cli.main import main

SIZE = 1 << 20


def test_every_unit_is_dispatched_again_and_only_the_log_stays(tmp_path):
    rows = list(recover.run("recover", tmp_path, repeats=1, size=SIZE))
    assert [row["log"] for row in rows] == ["200 B bodies", "1k B bodies"]
    assert all(row["units"] > 500 and row["bytes"] == SIZE and row["megabytesPerSecond"] > 0 for row in rows)
    names = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert names == {"0" * 20}


def test_the_command_accepts_recover(tmp_path, capsys):
    assert main(["bench", "recover", "--folder", str(tmp_path), "--size", str(SIZE), "--repeats", "1"]) == 0
    assert "recovery" in capsys.readouterr().out


def test_another_name_is_refused(tmp_path):
    with pytest.raises(KeyError):
        next(recover.run("other", tmp_path))
