"""A cancelled task ends: ``asyncio.wait_for`` of 3.11 may swallow the cancellation, ``asyncio.timeout`` does not."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_no_module_uses_wait_for() -> None:
    texts = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for package in ("engine", "viewer")
        for path in sorted((ROOT / package).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and node.attr == "wait_for"
        if isinstance(node.value, ast.Name) and node.value.id == "asyncio"
    ]
    assert texts == []
