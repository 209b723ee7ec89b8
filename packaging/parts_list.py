"""Complete the parts list of a release: the version, and the libraries of Debian that the archive brings.

``python3 packaging/parts_list.py storescope.cdx.json MANIFEST.txt VERSION`` changes the CycloneDX file in place.
The Python packages in it are those of ``archive/packages.lock``; ``cyclonedx-py`` writes them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote


def main() -> int:
    """Complete the file that the command line names."""
    file, manifest, version = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    parts = json.loads(file.read_text("utf-8"))
    complete(parts, manifest.read_text("utf-8"), version)
    file.write_text(json.dumps(parts, indent=2, sort_keys=True) + "\n", "utf-8")
    return 0


def complete(parts: dict[str, Any], manifest: str, version: str) -> None:
    """Add the version, and the packages that ``manifest`` names "From Debian 12:". Raises ``ValueError`` without."""
    packages = manifest.partition("\nFrom Debian 12:\n")[2].split()
    if not packages:
        raise ValueError("MANIFEST.txt: expected packages of Debian, found none")
    parts["metadata"]["component"]["version"] = version
    for package in packages:
        name, release, architecture = package.split("_")
        release = unquote(release)  # apt writes the epoch's colon as %3a in names of files
        reference = f"pkg:deb/debian/{name}@{quote(release, safe='')}?arch={architecture}&distro=debian-12"
        component = {"type": "library", "name": name, "version": release, "purl": reference, "bom-ref": reference}
        parts["components"].append(component)
        parts["dependencies"].append({"ref": reference})


if __name__ == "__main__":
    sys.exit(main())
