"""Catalogues are read like by gettext's tools, and contain every sentence of the engine."""

from __future__ import annotations

import io
import re
import string
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest
from babel.messages.pofile import read_po
from broken_stores import BROKEN, CONFIG
from handmade_stores import healthy
from PySide6.QtWidgets import QApplication
from source_texts import catalogue_tool, texts_of

from engine.inspection.findings import check
from engine.inspection.recovery import plan
from engine.inspection.snapshot import open_store
from engine.rules.findings import HAPPENED, Finding, Summary
from engine.sentences import Sentence, plural, sentence
from viewer.look import assets
from viewer.look.catalogue import CONTEXT_END, read_catalogue
from viewer.look.engine_words import engine_words

PHRASE = re.compile("[a-z]{3,} [a-z]{2,} [a-z]{2,}")
POLISH = r"""
msgid ""
msgstr ""
"Plural-Forms: nplurals=3; plural=(n==1 ? 0 : n%10>=2 && n%10<=4 && (n%100<12 || n%100>14) ? 1 : 2);\n"

# a comment
msgid "{n:,} file"
msgid_plural "{n:,} files"
msgstr[0] "{n:,} plik"
msgstr[1] "{n:,} pliki"
msgstr[2] "{n:,} plików"

msgid "a \"quoted\" word\n"
"and a line"
msgstr "„słowo”\n"
"i wiersz"

msgid "Note"
msgstr "Notatka"

msgctxt "remark"
msgid "Note"
msgstr "Uwaga"

#, fuzzy
msgid "doubtful"
msgstr "?"

msgid "not translated"
msgstr ""
"""


def test_each_language_has_its_own_plural_forms() -> None:
    catalogue = read_catalogue(POLISH)
    forms = [catalogue.find_plural("{n:,} file", n) for n in (1, 3, 5)]
    assert forms == ["{n:,} plik", "{n:,} pliki", "{n:,} plików"]
    assert catalogue.find('a "quoted" word\nand a line') == "„słowo”\ni wiersz"
    assert (catalogue.find("Note"), catalogue.find(f"remark{CONTEXT_END}Note")) == ("Notatka", "Uwaga")
    assert catalogue.find("doubtful") is None
    assert catalogue.find("not translated") is None


def entries() -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Yield each entry of the Chinese catalogue: singular and plural, then its translations."""
    data = files("resources").joinpath("i18n/zh_CN/LC_MESSAGES/storescope.po").read_bytes()
    for message in read_po(io.BytesIO(data), locale="zh_CN"):
        ids, texts = (text if isinstance(text, tuple) else (text,) for text in (message.id, message.string))
        if ids[0]:
            yield (f"{message.context}{CONTEXT_END}{ids[0]}" if message.context else ids[0], *ids[1:]), texts


def test_the_catalogue_is_read_as_gettext_reads_it() -> None:
    catalogue = read_catalogue(assets.resource_bytes("i18n/zh_CN/LC_MESSAGES/storescope.po").decode())
    assert catalogue.texts == {ids[0]: texts[0] for ids, texts in entries() if len(ids) == 1}
    assert catalogue.plurals == {ids[0]: texts for ids, texts in entries() if len(ids) > 1}


def gaps(text: str) -> set[tuple[str, str]]:
    return {(name, form) for _, name, form, _ in string.Formatter().parse(text) if name is not None}


def test_a_translation_has_the_gaps_of_its_sentence() -> None:
    for ids, texts in entries():
        for text in texts:
            assert gaps(text) == gaps(ids[-1]), ids


def test_every_sentence_of_the_engine_is_translated() -> None:
    chinese = assets.catalogue("zh_CN")
    known_values = chinese.texts.keys() | chinese.plurals.keys()
    texts = {text for text, _ in texts_of("engine")}
    assert len(texts) > 300
    assert texts - known_values == set()


def test_every_entry_is_a_text_of_the_source() -> None:
    """``packaging/catalogue.py`` removes an entry whose text no longer exists."""
    tool = catalogue_tool()
    listed = tool.read(tool.CATALOGUES / "zh_CN/LC_MESSAGES/storescope.po")
    assert tool.unused(listed) == []


def has_words(template: str) -> bool:
    return any(any(map(str.isalpha, literal)) for literal, *_ in string.Formatter().parse(template))


def is_listed(text: str) -> bool:
    forms = (text, text[:1].lower() + text[1:], text[:1].upper() + text[1:])
    return any(assets.language_state.catalogue.find(form) is not None for form in forms)


def untranslated(value: object) -> Iterator[str]:
    """Yield the texts that the window cannot look up: templates missing in the catalogue, and plain English."""
    if isinstance(value, Sentence):
        is_known = value.id in assets.language_state.catalogue.plurals or is_listed(value.id)
        if has_words(value.id) and not is_known:
            yield value.id
        for part in value.params.values():
            yield from untranslated(part)
    elif isinstance(value, list):
        for part in value:
            yield from untranslated(part)
    elif isinstance(value, str) and PHRASE.search(value) and not is_listed(value):
        yield value


@pytest.mark.full_form(keep=15)
@pytest.mark.parametrize("rule", sorted(BROKEN))
def test_findings_and_plans_are_looked_up_by_their_templates(
    themed_app: QApplication, rule: str, tmp_path: Path
) -> None:
    new_store = healthy()
    root = new_store.write(tmp_path / "store")
    BROKEN[rule](root, new_store)
    with open_store(root, CONFIG.get(rule)) as store:
        *results, summary = check(store)
        planned = plan(store, "5.5" if store.queues.rocksdb is not None else "5.3")
    assert isinstance(summary, Summary)
    texts: list[object] = []
    for finding in (finding for finding in results if isinstance(finding, Finding)):
        texts += [finding.message, finding.next_step, finding.title, finding.explanation]
        texts += [finding.evidence.get(name) for name in (HAPPENED, "expected", "witnesses")]
    if summary.incident is not None:
        texts += [summary.incident["whatHappened"], *(step["text"] for step in summary.incident["firstSteps"])]
    texts += [planned.why, planned.end_reason, *planned.notes, *(blocker.message for blocker in planned.blockers)]
    assets.set_language("zh_CN")
    assert [text for message in texts for text in untranslated(message)] == []


def test_values_are_filled_into_the_translation(themed_app: QApplication) -> None:
    assets.set_language("zh_CN")
    lost = plural("{n:,} message lost: {queues}", "{n:,} messages lost: {queues}", n=1_200, queues="A/0 1–3")
    assert engine_words(lost + "; " + sentence("{n} of tomorrow", n=2)) == "丢失 1,200 条消息：A/0 1–3; 2 of tomorrow"
    assert engine_words(sentence("Do what {rule} says.", rule="CL01")) == "按 CL01 的建议处理。"
