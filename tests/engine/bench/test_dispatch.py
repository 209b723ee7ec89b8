import pytest

from engine.bench import dispatch
from engine.cli.main import main


@pytest.fixture(autouse=True)
def _few_keys(monkeypatch):
    monkeypatch.setattr(dispatch, "KEY_COUNT", 100)


def test_dispatch_is_measured_for_both_bodies_and_leaves_only_the_logs(tmp_path):
    rows = list(dispatch.run("dispatch", tmp_path, repeats=1, size=1 << 20))
    assert [row["log"] for row in rows] == ["200-byte bodies", "1k-byte bodies"]
    assert all(row["messagesPerSecond"] > 0 for row in rows)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log-1k-1048576", "log-200-1048576"]


def test_every_key_is_found_one_by_one_and_many_at_once(tmp_path):
    rows = list(dispatch.run("query", tmp_path, repeats=1, size=1 << 20))
    assert [row["found"] for row in rows] == [100, 100]


def test_another_name_is_refused():
    with pytest.raises(KeyError):
        next(dispatch.run("scan"))


def test_the_command_prints_a_line_a_figure(tmp_path, capsys):
    arguments = ["bench", "dispatch", "--folder", str(tmp_path), "--repeats", "1", "--size", "1048576"]
    assert main([*arguments, "--json"]) == 0
    assert main(arguments) == 0
    assert "dispatch of a whole log" in capsys.readouterr().out
