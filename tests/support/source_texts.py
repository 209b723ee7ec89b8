"""Every text of the window and the engine that is translated, read from the source."""

from __future__ import annotations

from functools import lru_cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


@lru_cache(maxsize=1)
def catalogue_tool() -> Any:
    """Return ``packaging/catalogue.py`` as a module."""
    spec = spec_from_file_location("catalogue_tool", ROOT / "packaging/catalogue.py")
    assert spec is not None
    assert spec.loader is not None
    tool = module_from_spec(spec)
    spec.loader.exec_module(tool)
    return tool


def texts_of(folder: str) -> dict[tuple[str, str], str]:
    """Return each text of a package with its plural ("" without one), and the file that shows it."""
    return catalogue_tool().texts(folder)
