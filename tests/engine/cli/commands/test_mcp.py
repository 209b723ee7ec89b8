"""``mcp``: what is refused before a client connects."""

from __future__ import annotations

import sys

import pytest

import engine.cli
from engine.cli.main import main


def test_what_is_no_store_is_refused_in_one_line(tmp_path, capsys):
    assert main(["mcp", str(tmp_path / "nowhere")]) == 3
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("package", ["mcp", "anyio"])
def test_without_the_package_the_line_that_installs_it_is_named(monkeypatch, tmp_path, capsys, package):
    monkeypatch.delitem(sys.modules, "engine.cli.agent_server", raising=False)
    monkeypatch.delattr(engine.cli, "agent_server", raising=False)
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    assert main(["mcp", str(tmp_path)]) == 2
    assert "pip install 'storescope[mcp]'" in capsys.readouterr().err
