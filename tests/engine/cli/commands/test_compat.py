"""``compat``: the answer first, then its details, then all releases and modes; an exit code for a gate."""

from __future__ import annotations

import json

import pytest

from engine.cli.main import main

pytestmark = pytest.mark.golden
PAST_TEN = "queues-gone-past-ten-files-5.5.1"


def run(capsys, *arguments):
    code = main(["compat", *map(str, arguments)])
    return code, capsys.readouterr().out


def records(capsys, *arguments):
    code, text = run(capsys, *arguments, "--json")
    return code, [json.loads(line) for line in text.splitlines()]


def test_the_most_important_line_comes_first(golden, capsys):
    code, text = run(capsys, golden(PAST_TEN))
    lines = text.splitlines()
    assert code == 1
    assert lines[0] == "RocketMQ 5.5.1 with queues in files would start, but: 1,313 messages would be lost"
    assert lines[1].startswith("Set first: commitLogRecoverMaxNum=17 (")
    assert [line.split()[:2] for line in lines if line.startswith("5.3.3")][0] == ["5.3.3", "files"]


def test_every_release_and_mode_has_a_record_and_one_is_chosen(golden, capsys):
    code, answers = records(capsys, golden("clean-5.5.1"))
    assert code == 0
    assert len(answers) == 16
    (chosen,) = [answer for answer in answers if answer["chosen"]]
    assert (chosen["release"], chosen["mode"], chosen["verdict"]) == ("5.5", "files", "safe")


def test_one_release_is_asked_for(golden, capsys):
    for option in ("--to", "--release"):
        code, answers = records(capsys, golden(PAST_TEN), option, "5.3")
        assert code == 0
        assert [(answer["release"], answer["mode"]) for answer in answers] == [("5.3", "files")]


def test_a_mode_that_a_release_does_not_have_is_wrong_usage(golden, capsys):
    assert main(["compat", str(golden("clean-4.9.8")), "--to", "4.9", "--to-mode", "rocksdb"]) == 2
    assert "RocketMQ 4.9.8 does not have it" in capsys.readouterr().err


def test_the_configuration_decides_on_mode_and_settings(golden, capsys, tmp_path):
    conf = tmp_path / "broker.conf"
    sizes = "mappedFileSizeCommitLog=98304\nmappedFileSizeConsumeQueue=6000000\n"
    conf.write_text(f"{sizes}rocksdbCQDoubleWriteEnable=true\n")
    code, (answer,) = records(capsys, golden(PAST_TEN), "--to", "5.5", "--config", conf)
    assert (code, answer["mode"], answer["verdict"]) == (3, "combined", "refused")
    assert "combineCQUseRocksdbForLmq" in answer["message"]
    conf.write_text(f"{sizes}commitLogRecoverMaxNum=17\n")
    code, (answer,) = records(capsys, golden(PAST_TEN), "--to", "5.5", "--config", conf)
    assert (code, answer["verdict"], answer["settings"]) == (0, "safe", [])
