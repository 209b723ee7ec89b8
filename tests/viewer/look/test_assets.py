"""Icons take any colour, and every text of the viewer has its Chinese."""

from __future__ import annotations

import ast
import json
import re
import string
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QApplication, QFileDialog, QLabel
from source_texts import texts_of

from engine.sentences import plural, sentence
from viewer.look import assets
from viewer.look.engine_words import engine_words
from viewer.shell.commands import COMMANDS

UNCHANGED = ("English", "简体中文")


def test_every_text_has_its_chinese() -> None:
    chinese = assets.catalogue("zh_CN")
    texts = texts_of("viewer")
    lacking = [
        (text, where)
        for (text, several), where in texts.items()
        if text not in (chinese.plurals if several else chinese.texts)
    ]
    assert lacking == []
    assert len(texts) > 2000


def test_chinese_fills_the_same_names() -> None:
    for english, chinese in translations():
        assert _fields(english) == _fields(chinese), english


def translations() -> Iterator[tuple[str, str]]:
    chinese = assets.catalogue("zh_CN")
    yield from chinese.texts.items()
    yield from ((text, forms[0]) for text, forms in chinese.plurals.items() if "{n" in text)


def test_chinese_keeps_the_house_style() -> None:
    """Chinese texts use no "please", a half-width space between Chinese and Latin letters, and full-width full
    stops.
    """
    for english, chinese in translations():
        assert "请" not in re.sub("请求|申请", "", chinese), english  # the words for "request" and "apply"
        assert "您" not in chinese, english
        if english.endswith(".") and not english.endswith("…") and len(english) > 20:
            assert chinese[-1] in "。" or not english[:1].isupper(), (english, chinese)


def test_a_language_change_changes_texts_and_is_signalled(themed_app: QApplication) -> None:
    languages: list[str] = []
    assets.language_state.changed.connect(lambda: languages.append(assets.language()))
    assets.set_language("zh_CN")
    assert assets.tr("Findings") == "诊断"
    assert assets.tr_plural("{n:,} topic", "{n:,} topics", n=13_000) == "13,000 个主题"
    assert (assets.tr("Found"), assets.tr_in("evidence", "Found")) == ("找到了", "实为")
    assert assets.tr("A topic named so") == "A topic named so"
    assets.set_language("en")
    assert assets.tr_plural("{n:,} topic", "{n:,} topics", n=13_000) == "13,000 topics"
    assert assets.tr_in("evidence", "Found") == "Found"
    assert languages == ["zh_CN", "en"]


def test_sample_stores_have_chinese_texts() -> None:
    listing = files("resources").joinpath("samples", "samples.json")
    chinese = assets.catalogue("zh_CN").texts
    for item in json.loads(listing.read_text("utf-8")):
        for key in ("title", "text", "word"):
            assert item[key] in chinese, item[key]


@pytest.mark.parametrize("name", sorted({command.icon for command in COMMANDS if command.icon} | {"lock", "chevron"}))
def test_icons_have_the_requested_colour(themed_app: QApplication, name: str) -> None:
    picture = assets.icon_pixmap(name, QColor("#BE2A1B"), 40, 1.0).toImage()
    pixel_colors = [picture.pixelColor(x, y) for x in range(40) for y in range(40)]
    drawn = [color for color in pixel_colors if color.alpha() > 250]
    assert drawn
    for color in drawn:
        assert max(abs(a - b) for a, b in zip(color.getRgb()[:3], (0xBE, 0x2A, 0x1B), strict=True)) <= 2


def test_application_icon_comes_in_all_sizes(themed_app: QApplication) -> None:
    sizes = {size.width() for size in assets.app_icon().availableSizes()}
    assert {16, 32, 48, 256} <= sizes


def _fields(text: str) -> list[str]:
    return sorted(name for _, name, _, _ in string.Formatter().parse(text) if name)


def test_words_marks_without_translating() -> None:
    mark: Callable[[str], str] = assets.words
    assets.set_language("en")
    assert mark("Findings") == "Findings"


ROOT = Path(__file__).resolve().parents[3]
RAISED = ("engine/lab", "engine/cluster", "viewer/cluster", "viewer/lab")
FAULTS = {"UsageError", "NotALab", "CannotRead", "NoRecording", "UnexpectedAnswer"}


def raised_messages(folder: str) -> list[str]:
    """Return the error messages that the modules of a folder raise, with numbers for the values."""
    results = []
    for path in sorted((ROOT / folder).glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FAULTS and node.args:
                if isinstance(node.args[0], ast.Call):
                    if isinstance(node.args[0].func, ast.Name) and node.args[0].func.id in {"sentence", "plural"}:
                        results.append(sentence_of(node.args[0]))
                    continue  # else the text of another error
                output = [row for row in ast.walk(node.args[0]) if isinstance(row, ast.JoinedStr)] or [node.args[0]]
                for part in getattr(output[0], "values", output[:1]):
                    if not isinstance(part, ast.Constant | ast.FormattedValue):
                        break
                else:
                    parts = getattr(output[0], "values", output[:1])
                    text = "".join(
                        str(constant.value) if isinstance(constant, ast.Constant) else "77" for constant in parts
                    )
                    results.append(
                        f"broker.conf: {text}" if any(keyword.arg == "file" for keyword in node.keywords) else text
                    )
    return results


def sentence_of(call: ast.Call) -> str:
    """Return the text that a call of ``sentence`` or ``plural`` makes, with numbers for the values."""
    templates = [part.value for part in call.args if isinstance(part, ast.Constant)]
    values = {str(part.arg): 77 for part in call.keywords}
    return plural(*templates, **values) if len(templates) > 1 else sentence(*templates, **values)


@pytest.mark.parametrize("folder", RAISED)
def test_refusals_of_lab_and_cluster_are_in_chinese(themed_app: QApplication, folder: str) -> None:
    """Refusals about queues, brokers and cuts of the lab were in English in a Chinese window."""
    assets.set_language("zh_CN")
    output = raised_messages(folder)
    remaining = [item for item in output if not re.search("[\u4e00-\u9fff]", engine_words(item))]
    assert remaining == []
    if folder == "engine/lab":
        assert len(output) > 20


@pytest.mark.parametrize(
    "message", ["no longer registered", "no name server answers", "no answer", "their process ended"]
)
def test_reasons_for_missing_brokers_and_clients_are_in_chinese(themed_app: QApplication, message: str) -> None:
    assets.set_language("zh_CN")
    assert re.search("[\u4e00-\u9fff]", engine_words(message)), message


def test_file_dialogs_have_the_language_of_the_window(themed_app: QApplication) -> None:
    """In a Chinese window they showed "Look in", "Directory" and "Choose": Qt's own catalogue was not loaded."""
    assets.set_language("zh_CN")
    dialog = QFileDialog()
    dialog.setOption(QFileDialog.Option.DontUseNativeDialog)
    labels = " ".join(label.text() for label in dialog.findChildren(QLabel))
    assert "Look in" not in labels
    assert "查找" in labels or "查看" in labels
    assert QCoreApplication.translate("Nobody", "Not in any catalogue") == "Not in any catalogue"
    assets.set_language("en")
    english = QFileDialog()
    english.setOption(QFileDialog.Option.DontUseNativeDialog)
    assert "&Look in:" in [label.text() for label in english.findChildren(QLabel)]
