"""Values of options in the forms that users type."""

from __future__ import annotations

import agree
import handmade_stores
import pytest

from engine.cli.main import main


@pytest.fixture
def store(tmp_path):
    """Write a small healthy store."""
    return handmade_stores.healthy().write(tmp_path / "store")


NUMBERS = ["144", "0x90", "0b10010000", "1_4_4", " 144 "]


@pytest.mark.parametrize("text", NUMBERS)
def test_numbers_are_accepted_in_common_notations(store, text):
    first_record = agree.records_of("units", store, "--from", text, "--limit", 1)[0]
    assert first_record["physicalOffset"] == 144


def test_options_of_every_command_are_listed_with_the_common_ones(capsys):
    """``--paths-from-config`` was listed among the command's own options."""
    with pytest.raises(SystemExit):
        main(["check", "--help"])
    own_options, common_options = capsys.readouterr().out.split("common options:")
    assert "--paths-from-config" not in own_options.split("options:")[1]
    assert {"--config", "--paths-from-config", "--ignore-config-paths"} <= set(common_options.split())


def test_both_ways_to_treat_paths_are_refused(store, tmp_path, capsys):
    (tmp_path / "broker.conf").write_text("")
    words = ["--config", str(tmp_path / "broker.conf"), "--paths-from-config", "--ignore-config-paths"]
    assert main(["info", str(store), *words]) == 2
    assert "not allowed with --paths-from-config" in capsys.readouterr().err
