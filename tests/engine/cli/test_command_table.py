"""The table of commands: its names are those that the modules add."""

from __future__ import annotations

import importlib

import pytest

from engine.cli.command_table import COMMANDS
from engine.cli.options import Parser


@pytest.mark.parametrize("module", COMMANDS)
def test_a_module_adds_exactly_the_commands_that_the_table_gives_it(module):
    commands = Parser().add_subparsers()
    importlib.import_module(f"engine.cli.commands.{module}").register(commands)
    assert list(commands.choices) == list(COMMANDS[module])
