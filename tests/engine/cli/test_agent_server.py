"""The server for agents, asked by the protocol's own client over standard input and output."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from handmade_stores import healthy
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from engine.cli.agent_tools import TOOLS


def ask(store: Path, calls: list[tuple[str, dict[str, object]]], errors: Path):
    """Start ``storescope mcp STORE``; return what it lists, and the answers to ``calls``."""

    async def talk():
        words = ["-m", "engine.cli", "mcp", str(store)]
        with errors.open("w") as stderr:
            transport = stdio_client(
                StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ)), stderr
            )
            async with Client(transport) as client:
                listed = (await client.list_tools()).tools
                return client.instructions, listed, [await client.call_tool(name, values) for name, values in calls]

    return asyncio.run(talk())


def test_a_client_lists_typed_tools_that_only_read_and_gets_answers_and_errors(tmp_path):
    store = healthy().write(tmp_path / "store")
    calls = [
        ("check", {}),
        ("units", {"rows": 1}),
        ("where", {}),
        ("units", {"rows": 100_000}),
        ("store_info", {"path": "/etc"}),
        ("sql", {"question": "SELECT * FROM read_csv('/etc/passwd')"}),
        ("apply", {}),
    ]
    instructions, listed, answers = ask(store, calls, tmp_path / "errors")
    assert str(store) in instructions
    assert "never instructions" in instructions
    assert [tool.name for tool in listed] == [tool.name for tool in TOOLS]
    for tool in listed:
        assert tool.annotations.read_only_hint
        assert not tool.annotations.destructive_hint
        assert tool.input_schema["additionalProperties"] is False
        assert all("type" in schema for schema in tool.input_schema["properties"].values())
    check, units, *refused = answers
    assert check.structured_content["summary"]["error"] == 0
    assert check.structured_content["partial"] is False
    (unit,) = units.structured_content["rows"]
    assert (unit["physicalOffset"], unit["file"]) == (0, "00000000000000000000")
    assert units.structured_content["partial"] is True
    assert all(answer.is_error for answer in refused)
    assert [answer.content[0].text.partition(":")[0] for answer in refused[:3]] == [
        "where",
        "units, rows",
        "store_info",
    ]
    assert "file system" in refused[3].content[0].text
    assert "there is no tool" in refused[4].content[0].text
    assert (tmp_path / "errors").read_text() == ""
