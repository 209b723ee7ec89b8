"""Every rule has a help page in both languages, built from the rule table."""

from __future__ import annotations

import re

import pytest
from PySide6.QtWidgets import QApplication

from engine.rules.catalogue import RULES
from engine.rules.findings import STORE, Rule, at_least
from viewer.look import assets
from viewer.look.rule_pages import GROUPS, WORDS, rule_index, rule_page, rule_title, rules_in_order

HEADS = {"en": ["Evidence", "Cause", "Next step", "Known issues"], "zh_CN": ["证据", "原因", "下一步", "已知问题"]}
CODE = re.compile(r"`[^`]*`")
BROKERS_LINE = "logic queue order maybe wrong"
PROSE = re.compile(r"[a-z]{3,} [a-z]{3,} [a-z]{3,}")


@pytest.fixture(params=assets.LANGUAGES)
def language(request: pytest.FixtureRequest, themed_app: QApplication) -> str:
    assets.set_language(request.param)
    return str(request.param)


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_a_rules_page_has_all_texts_of_the_table(language: str, rule) -> None:
    page = rule_page(rule)
    assert page.startswith(f"# {rule.id} · {assets.tr(rule.title)}\n")
    assert f"**{assets.tr(WORDS[rule.severity])}** · {assets.tr(GROUPS[rule.group])}" in page
    assert assets.tr(rule.explanation) in page
    heads = re.findall(r"^## (.+)$", page, re.MULTILINE)
    assert [head for head in heads if head in HEADS[language]] == HEADS[language]
    for head, text in re.findall(r"^## (.+)\n\n((?:(?!## ).*\n?)+)", page, re.MULTILINE):
        assert text.strip(), head
    for command in (rule.command, *(item.command for item in rule.kinds.values())):
        assert not command or command.replace(STORE, "STORE") in page
    assert STORE not in page
    assert ("storescope snapshot" in page) or not at_least(rule.severity, "warn")
    for issue in rule.known_issues:
        assert issue in page
    if language == "en":
        assert rule.next_step[1:] in page
        for kind in rule.kinds.values():
            assert (kind.step or "")[1:] in page
    else:
        bare = [line for line in page.splitlines() if PROSE.search(CODE.sub("", line).replace(BROKERS_LINE, ""))]
        assert bare == [], "all of it is in Chinese"


def test_the_list_of_rules_links_to_each(language: str) -> None:
    text = rule_index()
    assert [rule.id for rule in rules_in_order()] == re.findall(r"\]\(rule:([A-Z]{2}\d\d)\)", text)
    assert {rule.id for rule in rules_in_order()} == set(RULES)
    assert all(rule_title(rule).startswith(rule.id) for rule in RULES.values())


def test_a_step_that_begins_with_a_name_keeps_it(themed_app: QApplication) -> None:
    assets.set_language("en")
    rule = Rule(
        "CL10", "log", "note", "A title", "An explanation.", "storescope recover --plan tells what a start keeps."
    )
    assert "\n\nstorescope recover --plan tells" in rule_page(rule)
