"""Commands as an installation without some packages runs them: ``python without_packages.py MODULE,… < COMMANDS``.

COMMANDS is a JSON object with the words of each command. The answer is one with the exit code, the standard output and
the standard error of each.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from importlib.machinery import ModuleSpec, PathFinder


class WithoutPackages(PathFinder):
    """Finds modules as Python does, except those of ``absent``."""

    absent: tuple[str, ...] = ()

    @classmethod
    def find_spec(cls, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if any(f"{fullname}.".startswith(f"{module}.") for module in cls.absent):
            return None
        return super().find_spec(fullname, path, target)


def main() -> None:
    WithoutPackages.absent = tuple(sys.argv[1].split(","))
    sys.meta_path[:] = [WithoutPackages if finder is PathFinder else finder for finder in sys.meta_path]
    from engine.cli.main import main as command

    results = {}
    for name, words in json.load(sys.stdin).items():
        output, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
            try:
                code = command(words)
            except SystemExit as end:
                code = int(end.code or 0)
        results[name] = code, output.getvalue(), errors.getvalue()
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()
