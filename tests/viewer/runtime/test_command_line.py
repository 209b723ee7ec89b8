"""Command lines that use the window's store and its configuration."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.config import MessageStoreConfig
from viewer.runtime.command_line import command_line, with_config

CONFIG = MessageStoreConfig(file="/etc/broker one.conf")
NAMED = "--config '/etc/broker one.conf'"


@pytest.mark.parametrize(
    ("words", "config", "line"),
    [
        (["storescope", "units", "STORE", "--json"], None, "storescope units '/my store' --json"),
        (["storescope", "units", "STORE", "--json"], CONFIG, f"storescope units '/my store' {NAMED} --json"),
        (["storescope", "trace", "STORE", "--", "T", "k"], CONFIG, f"storescope trace '/my store' {NAMED} -- T k"),
        (["storescope", "pipeline", "stats", "STORE"], CONFIG, "storescope pipeline stats '/my store'"),
        (["storescope", "cluster", "h:1"], CONFIG, "storescope cluster h:1"),
        (
            ["storescope", "info", "STORE"],
            CONFIG.without_paths(),
            f"storescope info '/my store' {NAMED} --ignore-config-paths",
        ),
        (
            ["storescope", "info", "STORE"],
            replace(CONFIG, paths_from_config=True),
            f"storescope info '/my store' {NAMED} --paths-from-config",
        ),
    ],
)
def test_a_command_names_the_store_and_its_configuration(words, config, line):
    """A copied command gave other answers than the window, because it lacked the broker.conf in use."""
    assert command_line(words, "/my store", config) == line


def test_a_command_of_the_engine_gets_the_configuration_and_a_sentence_does_not():
    assert with_config("storescope dispatch /s --to NEW", "/s", CONFIG) == f"storescope dispatch /s {NAMED} --to NEW"
    assert with_config("storescope dispatch /s --to NEW", "/s", None) == "storescope dispatch /s --to NEW"
    for sentence in ("", "Don't start a broker", "look at /s", "storescope copy /other NEW"):
        assert with_config(sentence, "/s", CONFIG) == sentence
