"""The engine's sentences with their values in Chinese; untranslated text stays unchanged."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from broken_stores import BROKEN, CONFIG
from handmade_stores import healthy
from PySide6.QtWidgets import QApplication

from engine.codec.flipped_bits import FlippedBits
from engine.codec.json_dialect import parse
from engine.errors import BadFilter, UsageError, cause_of
from engine.inspection.findings import check
from engine.inspection.recovery import plan
from engine.inspection.snapshot import StoreSnapshot, open_store
from engine.query import parse as parse_filter
from engine.releases import name_next_start
from engine.rules.catalogue import RULES
from engine.rules.causes import CAUSES, what_happened
from engine.rules.findings import Finding, Summary
from engine.sentences import sentence
from engine.store.recovery.plan import Release
from engine.times import duration_text
from viewer.look import assets
from viewer.look.engine_words import engine_words

TRANSLATIONS = (
    (sentence("entry {n:,} points at it", n=1_234), "条目 1,234 指向它"),
    (
        sentence("{place}: {role}, due {due}", place="A/2/17", role=sentence("waits in the timer wheel"), due="8Z"),
        "A/2/17：在时间轮中等待，8Z 到期",
    ),
    ("end of the last whole unit in the files", "文件中最后一个完整单元的末尾"),
    (
        sentence("would be explained by {cause}", cause=FlippedBits(79, 0b100).words),
        "消息体第 79 字节的第 2 位翻转可以解释",
    ),
    (cause_of(PermissionError(13, "Permission denied", "a")), "a：权限不足"),
    (str(BadFilter(sentence("there is no field {name}", name="'siz'"), 0)), "过滤器第 1 个字符：没有字段 'siz'"),
    (parse(b'{"a":"').complaint or "", "第 1 行第 6 列（偏移量 5）：字符串没有闭合"),
    (parse(b'{"a":1').complaint or "", "第 1 行第 7 列（偏移量 6）：值之后应为 ',' 或 '}'，实为 文本末尾"),
    (name_next_start("the next start indexes them again", "5.5"), "RocketMQ 5.5.1 下次启动会重新为它们建立索引"),
    (
        name_next_start("Do not change consumer offsets: the next start dispatches these messages again.", "4.9"),
        "不要改动消费位点：RocketMQ 4.9.8 下次启动会重新分发这些单元。",
    ),
)


@pytest.mark.parametrize(("english", "chinese"), TRANSLATIONS)
def test_a_sentence_keeps_its_values(themed_app: QApplication, english: str, chinese: str) -> None:
    assert engine_words(english) == english
    assets.set_language("zh_CN")
    assert engine_words(english) == chinese


def test_untranslated_text_stays(themed_app: QApplication) -> None:
    assets.set_language("zh_CN")
    assert engine_words("a sentence of tomorrow's engine") == "a sentence of tomorrow's engine"
    assert engine_words("") == ""


@pytest.mark.parametrize(("rule", "clause"), CAUSES)
def test_the_summary_of_an_incident_is_in_chinese(themed_app: QApplication, rule: str, clause: str) -> None:
    assets.set_language("zh_CN")
    finding = RULES[rule].finding(clause, severity="error")
    for crashed in (False, True):
        happened = what_happened([finding], crashed=crashed)
        assert clause.partition(":")[0][1:] in happened
        assert not re.search("[a-z]{3,} [a-z]{3,}", engine_words(happened)), engine_words(happened)


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
def test_a_duration_is_in_chinese(themed_app: QApplication, ms: int, words: str) -> None:
    assets.set_language("zh_CN")
    lag_text = sentence("The checkpoint is {span} behind the newest unit", span=duration_text(ms))
    assert engine_words(lag_text) == f"checkpoint 比最新单元落后 {words}"


@pytest.mark.parametrize("rule", sorted(RULES))
def test_the_texts_of_a_rule_are_in_chinese(themed_app: QApplication, rule: str) -> None:
    assets.set_language("zh_CN")
    finding = RULES[rule]
    steps = [finding.next_step, *(kind.step for kind in finding.kinds.values() if kind.step)]
    for text in (finding.title, finding.explanation, *(step[0].upper() + step[1:] for step in steps)):
        assert engine_words(text) != text, text


RULES_WITH_VALUES = (
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


@pytest.mark.parametrize("rule", RULES_WITH_VALUES)
def test_the_findings_of_a_rule_are_in_chinese(themed_app: QApplication, rule: str, tmp_path: Path) -> None:
    new_store = healthy()
    root = new_store.write(tmp_path / "store")
    BROKEN[rule](root, new_store)
    with open_store(root, CONFIG.get(rule)) as store:
        messages = [finding.message for finding in check(store, only={rule}) if isinstance(finding, Finding)]
    assets.set_language("zh_CN")
    for message in messages:
        assert re.search("[\u4e00-\u9fff]", engine_words(message)), message
    assert messages


@pytest.mark.full_form(keep=15)
@pytest.mark.parametrize("rule", sorted(BROKEN))
def test_check_and_plans_of_a_broken_store_are_in_chinese(themed_app: QApplication, rule: str, tmp_path: Path) -> None:
    """The reason for a start's beginning stayed English after times became dates, and where no queue remains."""
    new_store = healthy()
    root = new_store.write(tmp_path / "store")
    BROKEN[rule](root, new_store)
    with open_store(root, CONFIG.get(rule)) as store:
        *results, summary = check(store)
        assert isinstance(summary, Summary)
        texts = [summary.incident["whatHappened"]] if summary.incident is not None else []
        texts += [finding.message for finding in results if isinstance(finding, Finding)]
        for release in ("5.3", "4.9"):
            texts += plan_texts(store, release)
    assert_chinese(texts)


def plan_texts(store: StoreSnapshot, release: Release) -> list[str]:
    """Return the sentences of the plan of a start, or why there is none."""
    try:
        start = plan(store, release)
    except UsageError as error:  # 4.9 and 5.3 do not read queues in a RocksDB
        return [error.what]
    return [start.why, start.end_reason, *start.notes, *(blocker.message for blocker in start.blockers)]


def assert_chinese(texts: Sequence[str]) -> None:
    assets.set_language("zh_CN")
    for item in map(engine_words, texts):
        bare = re.sub(r"\([^()]*storescope [^()]*\)|\S*/\S+", "", item)
        assert not re.search(r"\b[a-z]{3,} [a-z]{2,} [a-z]{2,}\b", bare), item


@pytest.mark.parametrize(
    "text",
    [
        "size ~ 4",
        "topic * 3",
        "size > 'x'",
        "topic in (3",
        "size between 1 or 2",
        "size is 3",
        "size is",
        "keys > 'a'",
        "tags contains 4",
        "transaction = 'x'",
        "size + topic = 4",
        "now - 5m",
        "body matches /a/ii",
    ],
)
def test_filter_errors_are_in_chinese(themed_app: QApplication, text: str) -> None:
    """Hints and errors about kinds were English in the Chinese window, because they were texts without a template."""
    assets.set_language("zh_CN")
    with pytest.raises(BadFilter) as caught:
        parse_filter(text)
    assert not re.search(r"[a-z]{2,} [a-z]{2,} [a-z]{2,}", engine_words(caught.value.what)), engine_words(
        caught.value.what
    )
