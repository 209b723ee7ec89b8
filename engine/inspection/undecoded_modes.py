"""Notes from a broker's configuration on undecoded parts: storage modes, and one mode that 5.5 refuses."""

from __future__ import annotations

from pathlib import Path

from engine.errors import UsageError
from engine.files.properties_file import parse, read_text
from engine.rules.undecoded import Mode, modes_in, refuses_double_write


def undecoded_modes(path: Path | str | None) -> list[Mode]:
    """Settings in a broker's properties file with which it keeps a part of its store in a form that is not decoded;
    none without a file. Raises :class:`CannotRead`, :class:`UsageError`.
    """
    return modes_in(_settings(path)) if path is not None else []


def refuse_undecoded_modes(path: Path | str | None) -> None:
    """Raise :class:`UsageError` if the configuration for writing enables such a mode."""
    for mode in undecoded_modes(path):
        text = f"{mode.key}={mode.value} means {mode.what}, which this program does not write: take the line out"
        raise UsageError(text, file=str(path))


def refused_by_releases(path: Path | str | None) -> str | None:
    """Why a broker of 5.5 does not start with a properties file, or None."""
    if path is None or not refuses_double_write(_settings(path)):
        return None
    return (
        "rocksdbCQDoubleWriteEnable=true without combineCQUseRocksdbForLmq=true: a broker of 5.4 starts with this, one "
        "of 5.5 ends at once (exit 253)"
    )


def _settings(path: Path | str) -> dict[str, str]:
    return {item.key: item.value for item in parse(read_text(path), str(path))}
