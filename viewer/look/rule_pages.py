"""A help page for each rule, made from the rule table: reason, evidence, cause, steps, and known issues. No Qt."""

from __future__ import annotations

from collections.abc import Iterator

from engine.english import capital
from engine.rules.catalogue import RULES
from engine.rules.causes import CAUSES
from engine.rules.findings import CAUSES as EXPLAINING
from engine.rules.findings import STORE, Rule, at_least
from engine.rules.mendable import LEFT, REPAIRS, repairs_of
from viewer.look.assets import tr, words
from viewer.look.engine_words import engine_words

GROUPS = {
    "log": words("Commit log"),
    "queue": words("Queues"),
    "index": words("Index"),
    "checkpoint": words("Checkpoint"),
    "config": words("Config"),
    "state": words("State"),
    "timer": words("Timer"),
    "disk": words("Disk"),
}
WORDS = {"error": words("error"), "warn": words("warning"), "note": words("note"), "chat": words("remark")}


def rule_title(rule: Rule) -> str:
    """``CL01 · Bytes in the log that are no unit``."""
    return f"{rule.id} · {tr(rule.title)}"


def rules_in_order() -> list[Rule]:
    """Every rule by the part of the store that it is about, then by its id."""
    order = list(GROUPS)
    return sorted(RULES.values(), key=lambda rule: (order.index(rule.group), rule.id))


def rule_page(rule: Rule) -> str:
    """The page in Markdown, in the language in force."""
    return "\n\n".join(_parts(rule)) + "\n"


def rule_index() -> str:
    """All rules as links, by the part of the store."""
    parts, group = [f"# {tr('All rules')}"], ""
    for rule in rules_in_order():
        if rule.group != group:
            group = rule.group
            parts.append(f"## {tr(GROUPS[group])}")
        parts.append(f"[{rule.id}](rule:{rule.id}) {tr(rule.title)} · {tr(WORDS[rule.severity])}")
    return "\n\n".join(parts) + "\n"


def _parts(rule: Rule) -> Iterator[str]:
    yield f"# {rule_title(rule)}"
    yield f"**{tr(WORDS[rule.severity])}** · {tr(GROUPS[rule.group])}"
    yield tr(rule.explanation)
    yield f"## {tr('Evidence')}"
    yield _concludes_from(rule)
    yield tr("Each finding says where, what was expected and what was found.")
    yield f"## {tr('Cause')}"
    yield from _causes(rule)
    yield f"## {tr('Next step')}"
    wary = at_least(rule.severity, "warn")
    if wary:
        yield _snapshot()
    yield _step(rule.next_step)
    if rule.command is not None:
        yield _typed(rule.command)
    cases = [case for case in rule.kinds.values() if case.severity or case.step or case.command]
    if cases:
        yield f"## {tr('In other circumstances')}"
    for case in cases:
        grave = case.severity or rule.severity
        yield f"**{tr(WORDS[grave])}** · {_step(case.step or rule.next_step)}"
        if at_least(grave, "warn") and not wary:
            yield _snapshot()
        if case.command:
            yield _typed(case.command)
    yield f"## {tr('Repair')}"
    yield from _repairs(rule)
    yield f"## {tr('Known issues')}"
    yield "\n".join(f"- `{issue}`" for issue in rule.known_issues) or tr("None that we know of.")


def _repairs(rule: Rule) -> Iterator[str]:
    """Return what ``storescope repair`` does about such a finding, and why it may leave it as it is."""
    names = repairs_of(rule.id)
    if names:
        yield tr("{command} may mend it:", command="`storescope repair STORE`")
        yield "\n".join(f"- {engine_words(REPAIRS[name][1])} (`{name}`)" for name in names)
        yield tr("Otherwise: {why}.", why=engine_words(LEFT[rule.id]))
    else:
        yield tr("{command} leaves it: {why}.", command="`storescope repair STORE`", why=engine_words(LEFT[rule.id]))


def _concludes_from(rule: Rule) -> str:
    if not rule.needs:
        return tr("The rule judges bytes that were read.")
    parts = " · ".join(tr(name) for part, name in GROUPS.items() if part in rule.needs)
    return tr(
        "The rule concludes from all of: {parts}. While a file of these cannot be read it says nothing.", parts=parts
    )


def _causes(rule: Rule) -> Iterator[str]:
    clause = dict(CAUSES).get(rule.id)
    if clause is None:
        yield tr("Each finding names its cause, as far as files show it.")
    else:
        cause = engine_words(clause)
        yield capital(cause) + tr(".")
    if rule.id in EXPLAINING:
        yield tr("It explains findings of other rules: these are notes below it.")


def _snapshot() -> str:
    """The first step wherever something is wrong."""
    return tr("First a snapshot, and work on that: {command}", command="`storescope snapshot STORE DST`")


def _step(step: str) -> str:
    return engine_words(capital(step))


def _typed(command: str) -> str:
    return f"`{command.replace(STORE, 'STORE')}`"
