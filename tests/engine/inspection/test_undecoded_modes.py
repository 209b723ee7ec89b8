"""Configurations of brokers that keep a part of their store where it is not decoded."""

from __future__ import annotations

import pytest

from engine.cli.main import main
from engine.errors import UsageError
from engine.inspection.undecoded_modes import refuse_undecoded_modes, refused_by_releases, undecoded_modes
from engine.rules.undecoded import MODES


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.key)
def test_each_mode_is_refused_by_what_writes(mode, tmp_path, capsys):
    """``serve --config`` said "without effect here", and served a store without the tables that the broker has."""
    conf = tmp_path / "broker.conf"
    conf.write_text(f"brokerName=a\n{mode.key}={mode.value}\n")
    assert [found.key for found in undecoded_modes(conf)] == [mode.key]
    with pytest.raises(UsageError, match=f"{mode.key}={mode.value} means {mode.what}"):
        refuse_undecoded_modes(conf)
    for words in (
        ["serve", "STORE", "--port", "0", "--namesrv-port", "0"],
        ["put", "STORE", "--topic", "Orders", "--body", "tea", "--yes"],
    ):
        asked = [str(tmp_path / "new") if word == "STORE" else word for word in words]
        assert main([*asked, "--config", str(conf)]) in (2, 3)
        assert mode.key in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_a_configuration_of_files_is_taken(tmp_path):
    conf = tmp_path / "broker.conf"
    conf.write_text("storeType=default\nindexFileWriteEnable=true\nconfigManagerVersion=v1\n")
    assert undecoded_modes(conf) == []
    assert undecoded_modes(None) == []
    refuse_undecoded_modes(conf)


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("rocksdbCQDoubleWriteEnable=true\n", True),
        ("rocksdbCQDoubleWriteEnable=true\ncombineCQUseRocksdbForLmq=true\n", False),
        ("rocksdbCQDoubleWriteEnable=false\n", False),
        ("", False),
    ],
)
def test_what_5_5_does_not_start_with_is_told(text, refused, tmp_path):
    conf = tmp_path / "broker.conf"
    conf.write_text(text)
    assert (refused_by_releases(conf) is not None) is refused
    assert refused_by_releases(None) is None
