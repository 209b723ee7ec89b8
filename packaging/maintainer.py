"""Print the first author of ``pyproject.toml`` as Debian writes a maintainer: name and mail address.

Ends with 1 where the address is missing; the name is printed all the same.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"


def main() -> int:
    """Print the maintainer."""
    author = tomllib.loads(PROJECT.read_text("utf-8"))["project"]["authors"][0]
    sys.stdout.write(f"{author['name']} <{author['email']}>" if "email" in author else author["name"])
    return 0 if "email" in author else 1


if __name__ == "__main__":
    sys.exit(main())
