"""Which operating system this is, or which one to answer as."""

from __future__ import annotations

import os
import sys
from typing import Final

SETTING = "STORESCOPE_SYSTEM"
"""Environment variable for tests: ``darwin`` or ``win32`` let the package answer as on that system."""
_requested = os.environ.get(SETTING)
NAME: Final[str] = _requested if _requested in {"darwin", "win32"} else sys.platform
IS_LINUX: Final[bool] = NAME == "linux"
