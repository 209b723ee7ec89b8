"""``check`` on a terminal: rows, grouped consequences, and the explanation of each rule."""

from __future__ import annotations

import pytest

from engine.cli.main import main
from engine.rules.catalogue import RULES
from engine.rules.masking import Masking


def test_a_masked_command_hides_the_folders() -> None:
    record = RULES["CQ10"].finding("65 units").of_store("/home/me/store").record()
    assert "/home/me/store" in record["command"]
    assert record["command"] != Masking(hosts=True).record(record)["command"]
    assert "/home/me" not in str(Masking(hosts=True).record(record))


@pytest.mark.golden
def test_check_of_a_damaged_store_prints_the_next_step(golden, capsys) -> None:
    assert main(["check", str(golden("crash-power-5.3.3"))]) == 1
    out = capsys.readouterr().out
    assert "storescope recover " in out
    assert "--plan" in out
