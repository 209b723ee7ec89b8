"""Adds new sentences of the source to the catalogues: ``python packaging/catalogue.py`` from the checkout's root.

It reads every ``sentence(…)``, ``plural(…)`` and ``msgid(…)`` of the engine, writes those that a catalogue lacks to
its end with an empty translation, and writes all entries in the form that gettext's tools write. It removes nothing.
"""

from __future__ import annotations

import ast
import io
from collections.abc import Iterator
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po, write_po

ROOT = Path(__file__).resolve().parents[1]
DATED = (
    '"Project-Id',
    '"Report-Msgid',
    '"POT-Creation',
    '"PO-Revision',
    '"Last-Translator',
    '"Language-Team',
    '"Generated-By',
    "# ",
)
CATALOGUES = ROOT / "resources" / "i18n"


def sentences_of(source: Path) -> Iterator[tuple[str, str]]:
    """Yield the template and the plural template ("" without one) of each sentence that a module makes."""
    for node in ast.walk(ast.parse(source.read_text("utf-8"))):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        if node.func.id in {"sentence", "msgid"} and node.args:
            for text in _texts(node.args[0]):
                yield text, ""
        elif node.func.id == "plural" and len(node.args) > 1:
            yield from zip(_texts(node.args[0]), _texts(node.args[1]), strict=True)


def _texts(argument: ast.expr) -> Iterator[str]:
    """Yield the text of an argument; both texts of ``A if … else B``, and those of ``{…: A, …: B}[…]``."""
    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
        yield argument.value
    elif isinstance(argument, ast.IfExp):
        yield from _texts(argument.body)
        yield from _texts(argument.orelse)
    elif isinstance(argument, ast.Subscript) and isinstance(argument.value, ast.Dict):
        for value in argument.value.values:
            yield from _texts(value)


def read(path: Path) -> Catalog:
    """Read a catalogue."""
    with path.open("rb") as file:
        return read_po(file, locale=path.parents[1].name)


def write(path: Path, catalogue: Catalog) -> None:
    """Write a catalogue: sorted, a line a text, without the dates that would differ at every writing."""
    out = io.BytesIO()
    write_po(out, catalogue, width=0, no_location=True, sort_output=True)
    lines = out.getvalue().decode().splitlines()
    kept = [line for line in lines if not line.startswith(DATED) and line != "#, python-brace-format"]
    path.write_text("\n".join(kept).strip() + "\n", "utf-8")


def add_new(catalogue: Catalog) -> int:
    """Add each sentence of the engine that ``catalogue`` lacks, without a translation; return how many there were."""
    count = 0
    for source in sorted((ROOT / "engine").rglob("*.py")):
        for singular, several in sentences_of(source):
            if catalogue.get(singular) is None and any(letter.isalpha() for letter in _without_gaps(singular)):
                catalogue.add((singular, several) if several else singular)
                count += 1
    return count


def _without_gaps(template: str) -> str:
    return "".join(part.partition("}")[2] or part for part in template.split("{"))


def main() -> None:
    """Bring every catalogue up to date."""
    for path in sorted(CATALOGUES.glob("*/LC_MESSAGES/storescope.po")):
        catalogue = read(path)
        added = add_new(catalogue)
        write(path, catalogue)
        print(f"{path.relative_to(ROOT)}: {len(catalogue):,} sentences, {added:,} new")


if __name__ == "__main__":
    main()
