"""Features that one operating system has and another lacks: the only package that asks which system this is.

``portable`` needs nothing that a system may lack, ``posix`` is for Linux and macOS. Both have the same names.
``STORESCOPE_SYSTEM=darwin`` and ``win32`` choose what is used there, so that Linux can test it.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from engine.system.name import IS_LINUX as IS_LINUX
from engine.system.name import NAME as NAME

if sys.platform != "win32" and NAME != "win32":
    from engine.system.posix import *  # noqa: F403
else:
    from engine.system.portable import *  # noqa: F403

if TYPE_CHECKING:
    from multiprocessing import connection

    if sys.platform == "win32":
        PipeEnd = connection.PipeConnection
    else:
        PipeEnd = connection.Connection
else:
    PipeEnd = object
"""The type of an end of ``multiprocessing.Pipe()``, which Windows names differently."""
