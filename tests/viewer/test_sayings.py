"""The engine's sentences, with their values, in Chinese; what nobody has translated stays as it is."""

from __future__ import annotations

import json
import re

import pytest
from PySide6.QtWidgets import QApplication

from viewer import assets
from viewer.sayings import engine_words

SAID = (
    ("entry 1,234 points at it", "条目 1,234 指向它"),
    ("1,874 bytes are no unit: magic code 0x6B732D12", "1,874 字节不是消息单元：魔数为 0x6B732D12"),
    ("OrderPaid/2/17: stored in its topic", "OrderPaid/2/17：存于其主题"),
    ("end of the last whole unit in the files", "文件中最后一个完整单元的末尾"),
    (
        "The body's CRC is 7, the unit says 9: would be explained by bit 2 of byte 79 of the body",
        "消息体的 CRC 为 7，单元记为 9：消息体第 79 字节的第 2 位翻转可以解释",
    ),
    ("Queue A/0, entry 5 is empty, and entries follow it", "队列 A/0，条目 5 是空的，其后还有条目"),
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


def test_gaps_are_the_same_in_both_languages() -> None:
    listed = json.loads(assets.resource_bytes("i18n/zh_CN.engine.json"))
    for english, chinese in listed.items():
        assert sorted(set(re.findall(r"\{(\w+)\}", english))) == sorted(set(re.findall(r"\{(\w+)\}", chinese))), english
