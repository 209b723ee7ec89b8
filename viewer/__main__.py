"""``python -m viewer``: the same as ``storescope view``."""

from __future__ import annotations

import sys

from viewer.command import main

if __name__ == "__main__":
    sys.exit(main())
