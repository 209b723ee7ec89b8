"""What the README shows works as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import engine.cli.main

README = (Path(__file__).resolve().parents[2] / "README.md").read_text("utf-8")


def test_the_example_in_python_puts_and_finds_a_message(tmp_path, monkeypatch, capsys):
    (example,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(compile(example, "README.md", "exec"), {})
    assert capsys.readouterr().out == "PutMessageStatus.PUT_OK\nb'one cup of tea'\n"
    assert not (tmp_path / "orders-store" / "abort").exists()


def test_every_command_in_the_readme_exists(capsys):
    named = set(re.findall(r"^storescope (\w+)", README, re.MULTILINE)) - {"COMMAND", "view"}
    assert len(named) > 10
    assert named <= set(engine.cli.main.COMMANDS)
