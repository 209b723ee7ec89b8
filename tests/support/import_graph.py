"""Imports between files of the product: of ``engine`` and ``viewer``."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def modules() -> dict[str, Path]:
    results = {}
    for package in ("engine", "viewer"):
        for path in (ROOT / package).rglob("*.py"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            results[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return results


def imported(path: Path) -> set[str]:
    """Return all imports of a file as dotted names: those for types, and late ones in a function, too."""
    results: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            results |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            results |= {f"{node.module}.{alias.name}" for alias in node.names}
    return results


def graph(files: dict[str, Path]) -> dict[str, set[str]]:
    return {
        name: {item if item in files else item.rpartition(".")[0] for item in imported(path)} & files.keys() - {name}
        for name, path in files.items()
    }


def circles(edges: dict[str, set[str]]) -> list[set[str]]:
    """Return sets of files in which each leads to each other."""
    reached: dict[str, set[str]] = {}
    for start in edges:
        found_files, waiting = set(), [start]
        while waiting:
            for file in edges[waiting.pop()] - found_files:
                found_files.add(file)
                waiting.append(file)
        reached[start] = found_files
    circles_ = {
        frozenset(file for file in reached[name] if name in reached[file]) for name in edges if name in reached[name]
    }
    return [set(file) for file in circles_]
