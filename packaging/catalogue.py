"""Brings the catalogues up to date with the source: ``python packaging/catalogue.py`` from the checkout's root.

It reads the texts of the window (``tr``, ``tr_in``, ``tr_plural``, ``words``, ``words_in``, ``plural_words``, titles
of columns) and the sentences of the engine (``sentence``, ``plural``, ``msgid``). Those that a catalogue lacks are
added with an empty translation; an entry whose text is nowhere in the source any more is removed. All entries are
written sorted, in the form that gettext's tools write.
"""

from __future__ import annotations

import ast
import io
import json
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
SINGLE = {
    "engine": {"sentence": 0, "msgid": 0},
    "viewer": {"tr": 0, "words": 0, "sentence": 0, "msgid": 0}
    | dict.fromkeys(
        ("number_column", "text_column", "topic_column", "time_column", "moment_column", "chip_column", "Column"), 1
    ),
}
"""Functions that are called with a text, by the package that calls them, and which of their arguments it is."""
CONTEXT_END = "\x04"
"""Stands between the context of a text and the text, as in the files that gettext compiles."""
COUNTING = {"plural", "tr_plural", "plural_words"}
"""Functions that are called with a singular and a plural."""


def texts(*folders: str) -> dict[tuple[str, str], str]:
    """Return each text of the packages, with its plural ("" without one), and the file that shows it."""
    found: dict[tuple[str, str], str] = {}
    for folder in folders:
        for source in sorted((ROOT / folder).rglob("*.py")):
            for text in texts_of(source):
                if any(letter.isalpha() for letter in _without_gaps(text[0])):
                    found.setdefault(text, source.name)
    return found


def texts_of(source: Path) -> Iterator[tuple[str, str]]:
    """Yield each text that a module shows, its context in front, with its plural ("" without one)."""
    single = SINGLE[source.relative_to(ROOT).parts[0]]
    for node in ast.walk(ast.parse(source.read_text("utf-8"))):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        if node.func.id in {"tr_in", "words_in"}:
            context, text = (next(_constants(part), "") for part in node.args)
            if text:  # a name stands for a text that is marked elsewhere
                yield f"{context}{CONTEXT_END}{text}", ""
        elif node.func.id in COUNTING and len(node.args) > 1:
            yield from zip(_constants(node.args[0]), _constants(node.args[1]), strict=True)
        elif len(node.args) > single.get(node.func.id, len(node.args)):
            for text in _constants(node.args[single[node.func.id]]):
                yield text, ""


def _constants(argument: ast.expr) -> Iterator[str]:
    """Yield the text of an argument; both of ``A if … else B`` and ``A or B``, and those of ``{…: A, …: B}[…]``."""
    if isinstance(argument, ast.Constant) and isinstance(argument.value, str) and argument.value:
        yield argument.value
    elif isinstance(argument, ast.IfExp):
        yield from _constants(argument.body)
        yield from _constants(argument.orelse)
    elif isinstance(argument, ast.BoolOp):
        for value in argument.values:
            yield from _constants(value)
    elif isinstance(argument, ast.Subscript) and isinstance(argument.value, ast.Dict):
        for value in argument.value.values:
            yield from _constants(value)


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
    """Add each text of the source that ``catalogue`` lacks, without a translation; return how many there were."""
    count = 0
    for key, several in texts(*SINGLE):
        context, _, singular = key.rpartition(CONTEXT_END)
        entry = catalogue.get(singular, context or None)
        if entry is not None and (not several or entry.id == (singular, several)):
            continue
        if entry is not None:
            catalogue.delete(singular, context or None)
        catalogue.add((singular, several) if several else singular, context=context or None)
        count += 1
    return count


def unused(catalogue: Catalog) -> list[tuple[str, str | None]]:
    """Return the text and context of each entry that is nowhere in the source: in no module, rule or sample."""
    used, contexts = {_uncapitalised(text) for text in _strings()}, {text for text, _ in texts(*SINGLE)}
    entries = [(message.id if isinstance(message.id, str) else message.id[0], message.context) for message in catalogue]
    return [
        (text, context)
        for text, context in entries
        if (context and f"{context}{CONTEXT_END}{text}" not in contexts) or (text and _uncapitalised(text) not in used)
    ]


def _strings() -> Iterator[str]:
    """Yield every string of the source, the texts of the rules, which some join, and those of the samples."""
    from engine.rules.catalogue import RULES

    for folder in SINGLE:
        for source in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(source.read_text("utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield node.value
    for rule in RULES.values():
        yield from (rule.title, rule.explanation, rule.next_step)
        yield from (kind.step for kind in rule.kinds.values() if kind.step)
    for sample in json.loads((ROOT / "resources" / "samples" / "samples.json").read_text("utf-8")):
        yield from (sample[key] for key in ("title", "text", "word"))


def _uncapitalised(text: str) -> str:
    return text[:1].lower() + str(text[1:])


def _without_gaps(template: str) -> str:
    return "".join(part.partition("}")[2] or part for part in template.split("{"))


def main() -> None:
    """Bring every catalogue up to date."""
    for path in sorted(CATALOGUES.glob("*/LC_MESSAGES/storescope.po")):
        catalogue = read(path)
        added, removed = add_new(catalogue), unused(catalogue)
        for text, context in removed:
            catalogue.delete(text, context)
        write(path, catalogue)
        print(f"{path.relative_to(ROOT)}: {len(catalogue):,} texts, {added:,} new, {len(removed):,} removed")


if __name__ == "__main__":
    main()
