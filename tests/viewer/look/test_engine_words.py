"""The engine's sentences, with their values, in Chinese; what nobody has translated stays as it is."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from broken_stores import BROKEN, CONFIG
from made_stores import healthy
from PySide6.QtWidgets import QApplication

from engine.codec.words import duration_text
from engine.inspection.findings import check
from engine.inspection.recovery import plan
from engine.inspection.snapshot import open_store
from engine.rules.catalogue import RULES
from engine.rules.causes import CAUSES, what_happened
from engine.rules.findings import Finding, Summary
from engine.sentences import sentence
from engine.store.recovery.plan import Release
from viewer.look import assets
from viewer.look.engine_words import engine_words

SAID = (
    ("entry 1,234 points at it", "条目 1,234 指向它"),
    ("OrderPaid/2/17: stored in its topic", "OrderPaid/2/17：存于其主题"),
    ("end of the last whole unit in the files", "文件中最后一个完整单元的末尾"),
    (
        "abnormal exit: the last file whose first unit was stored at or before 8Z (the checkpoint's time less 3 s)",
        "异常退出：首个单元存储时间不晚于 8Z（checkpoint 时间减 3 秒）的最后一个文件",
    ),
    ("line 1 column 6 (offset 5): a string is not closed", "第 1 行第 6 列（偏移量 5）：字符串没有闭合"),
    ("expected ',' or '}' after a value, found the end of the text", "值之后应为 ',' 或 '}'，实为 文本末尾"),
    ("the next start of RocketMQ 5.5.1 indexes them again", "RocketMQ 5.5.1 下次启动会重新为它们建立索引"),
    (
        "Do not change consumer offsets: the next start of RocketMQ 4.9.8 dispatches these messages again.",
        "不要改动消费位点：RocketMQ 4.9.8 下次启动会重新分发这些单元。",
    ),
)


@pytest.mark.parametrize(("english", "chinese"), SAID)
def test_a_sentence_keeps_its_values(dressed: QApplication, english: str, chinese: str) -> None:
    assert engine_words(english) == english
    assets.set_language("zh_CN")
    assert engine_words(english) == chinese


def test_what_nobody_translated_stays(dressed: QApplication) -> None:
    assets.set_language("zh_CN")
    assert engine_words("a sentence of tomorrow's engine") == "a sentence of tomorrow's engine"
    assert engine_words("") == ""


@pytest.mark.parametrize(("rule", "clause"), CAUSES)
def test_what_happened_is_said_in_chinese(dressed: QApplication, rule: str, clause: str) -> None:
    assets.set_language("zh_CN")
    finding = RULES[rule].found(clause, severity="error")
    for crashed in (False, True):
        happened = what_happened([finding], crashed=crashed)
        assert clause.partition(":")[0][1:] in happened
        assert not re.search("[a-z]{3,} [a-z]{3,}", engine_words(happened)), engine_words(happened)


ENGLISH = [
    "it has config/topicQueueMapping.json",
    "8 slots: the only number that the length and the chains allow",
    "RocketMQ's defaults, by the file's length",
    "cut off: 40 bytes left, a unit has at least 91",
    "a unit or a blank",
    "a message or a committed one",
    "below 1,048,097",
]


@pytest.mark.parametrize("said", ENGLISH)
def test_a_sentence_with_its_values_is_said_in_chinese(dressed: QApplication, said: str) -> None:
    assets.set_language("zh_CN")
    assert not re.search("(?<!/)[a-z]{2,} [a-z]{2,}", engine_words(said)), engine_words(said)


SPANS = [
    (12, "12 毫秒"),
    (3000, "3 秒"),
    (90_000, "1.5 分钟"),
    (9_000_000, "2.5 小时"),
    (86_400_000, "1 天"),
    (400 * 86_400_000, "400 天"),
    (29_920_807 * 60_000, "56.9 年"),
]


@pytest.mark.parametrize(("ms", "words"), SPANS)
def test_a_stretch_of_time_is_said_in_chinese(dressed: QApplication, ms: int, words: str) -> None:
    assets.set_language("zh_CN")
    behind = sentence("The checkpoint is {span} behind the newest unit", span=duration_text(ms))
    assert engine_words(behind) == f"checkpoint 比最新单元落后 {words}"


def test_gaps_are_the_same_in_both_languages() -> None:
    listed = json.loads(assets.resource_bytes("i18n/zh_CN.engine.json"))
    for english, chinese in listed.items():
        assert sorted(set(re.findall(r"\{(\w+)\}", english))) == sorted(set(re.findall(r"\{(\w+)\}", chinese))), english


@pytest.mark.parametrize("rule", sorted(RULES))
def test_what_a_rule_says_is_said_in_chinese(dressed: QApplication, rule: str) -> None:
    assets.set_language("zh_CN")
    one = RULES[rule]
    steps = [one.next_step, *(kind.step for kind in one.kinds.values() if kind.step)]
    for text in (one.title, one.explanation, *(step[0].upper() + step[1:] for step in steps)):
        assert engine_words(text) != text, text


FOUND = (
    "CF03",
    "CF05",
    "CF06",
    "CF07",
    "CF08",
    "CF09",
    "CF10",
    "CF11",
    "CF12",
    "CF13",
    "RP03",
    "CL08",
    "CL13",
    "CQ14",
    "CQ15",
    "DK03",
    "IX03",
    "IX10",
    "TM01",
    "TM02",
    "TM03",
    "CK02",
)


@pytest.mark.parametrize("rule", FOUND)
def test_what_a_rule_found_is_said_in_chinese(dressed: QApplication, rule: str, tmp_path: Path) -> None:
    made = healthy()
    root = made.write(tmp_path / "store")
    BROKEN[rule](root, made)
    with open_store(root, CONFIG.get(rule)) as store:
        found = [one.message for one in check(store, only={rule}) if isinstance(one, Finding)]
    assets.set_language("zh_CN")
    for message in found:
        assert re.search("[\u4e00-\u9fff]", engine_words(message)), message
    assert found


@pytest.mark.parametrize("rule", sorted(BROKEN))
def test_what_happened_somewhere_is_said_in_chinese(dressed: QApplication, rule: str, tmp_path: Path) -> None:
    made = healthy()
    root = made.write(tmp_path / "store")
    BROKEN[rule](root, made)
    with open_store(root, CONFIG.get(rule)) as store:
        *found, summary = check(store)
    assert isinstance(summary, Summary)
    told = [summary.incident["whatHappened"]] if summary.incident is not None else []
    said_in_chinese([*told, *(one.message for one in found if isinstance(one, Finding))])


@pytest.mark.parametrize("like", ["5.3", "4.9"])
@pytest.mark.parametrize("rule", sorted(BROKEN))
def test_a_plan_is_told_in_chinese(dressed: QApplication, rule: str, like: Release, tmp_path: Path) -> None:
    """Why a start begins where it does stayed English once times were dates, and where no queue is left."""
    made = healthy()
    root = made.write(tmp_path / "store")
    BROKEN[rule](root, made)
    with open_store(root, CONFIG.get(rule)) as store:
        found = plan(store, like)
    said_in_chinese([found.why, found.end_reason, *found.notes, *(one.message for one in found.blockers)])


def said_in_chinese(texts: Sequence[str]) -> None:
    assets.set_language("zh_CN")
    for one in map(engine_words, texts):
        bare = re.sub(r"\([^()]*storescope [^()]*\)|\S*/\S+", "", one)
        assert not re.search(r"\b[a-z]{3,} [a-z]{2,} [a-z]{2,}\b", bare), one
