"""The command line that gives the same answer as the window: the store that is open, and the broker's configuration
with which it is looked at. No Qt.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from engine.config import MessageStoreConfig

STORE = "STORE"
"""Stands for the path of the open store in the words of a command."""
WITHOUT_CONFIG = frozenset({"pipeline", "replay", "cluster"})
"""Commands that have no option ``--config``."""


def command_line(words: Sequence[str], path: Path | str, config: MessageStoreConfig | None = None) -> str:
    """Return ``storescope COMMAND …`` as a shell takes it; behind the store stands what is in force of a broker's
    configuration.
    """
    arguments = [str(path) if word == STORE else word for word in words]
    if (
        str(path) in arguments
        and len(arguments) > 1
        and arguments[1] not in WITHOUT_CONFIG
        and "--config" not in arguments
    ):
        position = arguments.index(str(path)) + 1
        arguments[position:position] = config_options(config)
    return shlex.join(arguments)


def with_config(command: str, path: Path | str, config: MessageStoreConfig | None) -> str:
    """Return a whole command that was made without knowing of ``config``, with its options; anything else as it is."""
    try:
        words = shlex.split(command)
    except ValueError:  # a sentence with a quotation mark
        return command
    named = config is not None and words[:1] == ["storescope"] and str(path) in words
    return command_line(words, path, config) if named else command


def config_options(config: MessageStoreConfig | None) -> list[str]:
    """The options by which a command reads the same configuration, with its paths or without."""
    if config is None or not config.file:
        return []
    paths = (
        ["--ignore-config-paths"]
        if config.paths_left_out
        else ["--paths-from-config"]
        if config.paths_from_config
        else []
    )
    return ["--config", config.file, *paths]
