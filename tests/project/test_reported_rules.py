"""Every rule of the catalogue is used by some check."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from engine.rules.catalogue import RULES

LIST_MODULE = "causes.py"
"""This module lists rules and reports none."""
ROOT = Path(__file__).resolve().parents[2]


def reported_rules(source: str) -> set[str]:
    """Return the rules that the code reports: ``catalogue.CL03``, ``CL03`` imported from there, ``"CL03"`` in a table;
    without those that it only compares with a finding's id.
    """
    tree = ast.parse(source)
    compared = {id(row) for node in ast.walk(tree) if isinstance(node, ast.Compare) for row in ast.walk(node)}
    nodes = [node for node in ast.walk(tree) if id(node) not in compared]
    names = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    names |= {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    names |= {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return {name for name in names if re.fullmatch(r"[A-Z]{2}\d\d", name)}


def test_a_rule_that_is_only_defined_or_compared_is_not_reported():
    assert reported_rules("CL03 = 1\nCL04.finding('text')\ncatalogue.CL05\none.id == 'CL06'\nRULES['CL07']") == {
        "CL04",
        "CL05",
        "CL07",
    }


def test_every_rule_is_reported_and_no_other():
    modules = [
        path
        for path in (ROOT / "engine").rglob("*.py")
        if path.name != LIST_MODULE and not path.name.startswith("catalogue")
    ]
    assert {rule for path in modules for rule in reported_rules(path.read_text("utf-8"))} == set(RULES)
