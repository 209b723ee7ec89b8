"""Write the generated pages of the documentation: one for each command and one for each finding.

``python packaging/docs.py`` writes them, and the words and keys in links such as ``[Go to… (Ctrl+G)](command:go.to)``.
``python packaging/docs.py --check`` changes nothing; it names the pages that are not current and ends with 1.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "resources" / "docs"
COMMAND_LINK = re.compile(r"\[[^]]*\]\(command:([a-z]+\.[A-Za-z]+)\)")
GENERATED = "<!-- written by packaging/docs.py -->"


def main() -> int:
    """Write the pages, or with ``--check`` name those that are not current."""
    sys.path.insert(0, str(ROOT))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; end with 1 if a page is not current")
    check = parser.parse_args().check
    stale = stale_pages()
    if check:
        for path in stale:
            print(f"not current: {path.relative_to(ROOT)} (run: python packaging/docs.py)")
        return 1 if stale else 0
    for path, text in stale.items():
        if text is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        print(path.relative_to(ROOT))
    return 0


def stale_pages() -> dict[Path, str | None]:
    """Return the pages that differ from what would be written, with their new text; None for a page to delete."""
    pages = dict(generated_pages())
    result: dict[Path, str | None] = {}
    for folder in ("commands", "findings"):
        for path in sorted((DOCS / folder).glob("*.md")):
            if path not in pages:
                result[path] = None
    for path in sorted(DOCS.rglob("*.md")):
        if path not in pages and path not in result:
            pages[path] = with_command_words(path.read_text("utf-8"), language_of(path))
    current = {path: path.read_text("utf-8") if path.exists() else None for path in pages}
    return result | {path: text for path, text in pages.items() if text != current[path]}


def generated_pages() -> Iterator[tuple[Path, str]]:
    """Yield path and text of every generated page."""
    yield from command_pages()
    yield from finding_pages()
    yield DOCS / "reference" / "filter-language.md", filter_page()
    yield DOCS / "reference" / "json-records.md", records_page()
    yield DOCS / "reference" / "window-commands.md", window_commands_page()


def language_of(path: Path) -> str:
    """Return the language of a page: that of its folder, or English."""
    from viewer.look.assets import LANGUAGES

    folder = path.relative_to(DOCS).parts[0]
    return folder if folder in LANGUAGES else "en"


def with_command_words(text: str, language: str) -> str:
    """Return ``text`` with the current words and keys in its links to commands of the window."""
    from viewer.look.assets import catalogue
    from viewer.shell.commands import BY_ID

    words = catalogue(language)

    def link(match: re.Match[str]) -> str:
        command = BY_ID[match[1]]
        title = (words.find(command.text) or command.text).rstrip("…")
        keys = f" ({command.keys[0]})" if command.keys else ""
        return f"[{title}{keys}](command:{command.id})"

    return COMMAND_LINK.sub(link, text)


# ---- commands of the window ------------------------------------------------------------------------------------------


def window_commands_page() -> str:
    """Return the page with every command of the window, menu by menu."""
    from viewer.shell.commands import COMMANDS, MENUS

    parts = [
        GENERATED,
        "# Commands of the window",
        "Each command stands once in the menus, and in the list of [all commands](command:palette.open).",
    ]
    for menu in MENUS:
        rows = ["| Command | Other keys | Submenu | Needs |", "|---|---|---|---|"]
        for command in (command for command in COMMANDS if command.menu == menu):
            needs = "a store" if command.needs else ""
            if command.does is None:
                needs = "a view that has it"
            keys = ", ".join(command.keys[1:])
            place = command.submenu if command.palette else f"{command.submenu} (not in the palette)".strip()
            title = cell(command.text)
            rows.append(f"| [{title}](command:{command.id}) | {cell(keys)} | {cell(place)} | {needs} |")
        parts += [f"## {menu}", "\n".join(rows)]
    return with_command_words("\n\n".join(parts) + "\n", "en")


# ---- commands --------------------------------------------------------------------------------------------------------


def command_pages() -> Iterator[tuple[Path, str]]:
    """Yield a page for each command, and the list of them."""
    from engine.cli.main import build_parser

    rows = ["| Command | What it does |", "|---|---|"]
    for name, summary, parser in subcommands(build_parser()):
        page = f"{name}.md"
        rows.append(f"| [{name}](../commands/{page}) | {cell(summary)} |")
        yield DOCS / "commands" / page, command_page(name, summary, parser)
    head = [
        GENERATED,
        "# Commands",
        "Every command is `storescope COMMAND`. Common options: [configuration](configuration.md).",
    ]
    yield DOCS / "reference" / "commands.md", "\n\n".join([*head, "\n".join(rows)]) + "\n"


def subcommands(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str, argparse.ArgumentParser]]:
    """Yield name, summary and parser of each command below ``parser``."""
    for action in parser._actions:  # noqa: SLF001 (argparse has no other way to ask)
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            summaries = {choice.dest: choice.help or "" for choice in action._choices_actions}  # noqa: SLF001
            for name, choice in action.choices.items():
                if name in summaries:
                    yield name, summaries[name], choice


def command_page(name: str, summary: str, parser: argparse.ArgumentParser) -> str:
    """Return the page of one command, with its jobs if it has any."""
    parts = [GENERATED, f"# {name}", sentence(summary), *usage_parts(f"storescope {name}", summary, parser, 2)]
    for job, job_summary, job_parser in subcommands(parser):
        job_parts = usage_parts(f"storescope {name} {job}", job_summary, job_parser, 3)
        parts += [f"## {name} {job}", sentence(job_summary), *job_parts]
    return "\n\n".join(parts) + "\n"


def usage_parts(prog: str, summary: str, parser: argparse.ArgumentParser, level: int) -> Iterator[str]:
    """Yield description, command line, arguments, options and examples as Markdown."""
    if parser.description and parser.description != summary + ".":
        yield prose(parser.description)
    arguments = [action for action in parser._get_positional_actions() if action.nargs != argparse.PARSER]  # noqa: SLF001
    options = [action for action in parser._get_optional_actions() if action.help != argparse.SUPPRESS]  # noqa: SLF001
    words = [prog, *(argument_words(action) for action in arguments)]
    if any(True for _ in subcommands(parser)):
        words.append("JOB …")
    yield f"```text\n{' '.join(words)} [options]\n```"
    described = [action for action in arguments if action.help]
    if described:
        rows = [f"| `{argument_words(action)}` | {cell(help_text(action, parser))} |" for action in described]
        yield "\n".join(["| Argument | Meaning |", "|---|---|", *rows])
    rows = [
        f"| {option_words(action)} | {cell(help_text(action, parser))} |" for action in options if action.dest != "help"
    ]
    if rows:
        yield f"{'#' * level} Options{'' if level == 2 else f' of {prog.rsplit(maxsplit=1)[-1]}'}"
        yield "\n".join(["| Option | Meaning |", "|---|---|", *rows])
    if parser.epilog:
        yield f"```text\n{parser.epilog.strip()}\n```"


def argument_words(action: argparse.Action) -> str:
    """Return an argument as the command line shows it: ``STORE…``, ``[STORE]``."""
    name = metavar_of(action)
    if action.nargs == "?":
        return f"[{name}]"
    return f"[{name}…]" if action.nargs == "*" else f"{name}…" if action.nargs == "+" else name


def metavar_of(action: argparse.Action) -> str:
    """Return the name of a value."""
    if isinstance(action.metavar, tuple):
        return " ".join(action.metavar)
    if action.metavar:
        return action.metavar
    if action.choices:
        return "{" + ",".join(str(choice) for choice in action.choices) + "}"
    return action.dest if not action.option_strings else action.dest.upper()


def option_words(action: argparse.Action) -> str:
    """Return all names of an option, with its value."""
    value = "" if action.nargs == 0 else f" {metavar_of(action)}"
    return ", ".join(f"`{name}{value}`" for name in action.option_strings)


def help_text(action: argparse.Action, parser: argparse.ArgumentParser) -> str:
    """Return the help of an option with its values filled in."""
    return (action.help or "") % (vars(action) | {"prog": parser.prog}) if action.help else ""


def sentence(text: str) -> str:
    """Return ``text`` with a capital and a full stop."""
    text = prose(text)
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def prose(text: str) -> str:
    """Return plain text as Markdown that shows it unchanged."""
    return re.sub(r"([<*])", r"\\\1", text.strip())


def cell(text: str) -> str:
    """Return ``text`` for a cell of a table."""
    return prose(" ".join(text.split())).replace("|", r"\|")


# ---- findings --------------------------------------------------------------------------------------------------------


def finding_pages() -> Iterator[tuple[Path, str]]:
    """Yield a page for each rule, and the list of them."""
    from viewer.look.rule_pages import GROUPS, WORDS, rule_page, rules_in_order

    parts = [GENERATED, "# Findings", "`storescope check STORE` and the view *Findings* report these."]
    rules = rules_in_order()
    for group, title in GROUPS.items():
        rows = ["| Finding | Title | Severity |", "|---|---|---|"]
        members = [rule for rule in rules if rule.group == group]
        rows += [f"| [{rule.id}]({rule.id}.md) | {cell(rule.title)} | {WORDS[rule.severity]} |" for rule in members]
        if members:
            parts += [f"## {title}", "\n".join(rows)]
    yield DOCS / "findings" / "index.md", "\n\n".join(parts) + "\n"
    for rule in rules:
        yield DOCS / "findings" / f"{rule.id}.md", f"{GENERATED}\n{rule_page(rule)}"


# ---- reference -------------------------------------------------------------------------------------------------------


def filter_page() -> str:
    """Return the page about the filter language: its grammar, and its fields."""
    from engine.query import GRAMMAR
    from engine.query.fields import FIELDS

    grammar = GRAMMAR.partition("\nFields\n")[0].rstrip()
    rows = ["| Field | Kind | Meaning |", "|---|---|---|"]
    for field in FIELDS.values():
        values = f" ({', '.join(field.words)})" if field.words else ""
        rows.append(f"| `{field.name}` | {field.kind} | {cell(field.about + values)} |")
    parts = [
        GENERATED,
        "# Filter language",
        "The filter line of the window, `--where` of commands, and colouring rules use the same language.",
        f"```text\n{grammar}\n```",
        "## Fields",
        "\n".join(rows),
        (
            '`properties.NAME` is any other property of a message. `body.NAME`, `body.items[0].n` and `body["NAME"]`\n'
            "are fields of a body that [rules decode](../guides/decode-bodies.md)."
        ),
    ]
    return "\n\n".join(parts) + "\n"


def records_page() -> str:
    """Return the page about JSON records: fields and types of each, from the contract that tests hold commands to."""
    sys.path.insert(0, str(ROOT / "tests" / "support"))
    from contract_records import RECORDS

    parts = [
        GENERATED,
        "# JSON records",
        "With `--json` a command prints one record a line. `type` says which one. Later versions may add fields.",
        "An absent value is `null`. Offsets are in bytes, times in ms since 1970.",
    ]
    for name, fields in RECORDS.items():
        rows = [f"| `{field}` | {cell(type_words(check))} |" for field, check in fields.items()]
        parts += [f"## {name}", "\n".join(["| Field | Type |", "|---|---|", *rows])]
    return "\n\n".join(parts) + "\n"


TYPE_WORDS = {int: "number", float: "number", str: "text", bool: "true or false", dict: "object", list: "list"}


def type_words(check: object) -> str:
    """Return a field's type in words."""
    if check is None or check is type(None):
        return "null"
    if isinstance(check, type):
        return TYPE_WORDS.get(check, check.__name__)
    if isinstance(check, tuple):
        return " or ".join(type_words(part) for part in check)
    if isinstance(check, (set, frozenset)):
        return ", ".join(f"`{value}`" for value in sorted(check, key=str))
    if isinstance(check, list):
        return f"list of {type_words(check[0])}"
    if isinstance(check, dict):
        return "object: " + ", ".join(f"`{key}`" for key in check)
    return str(check)


if __name__ == "__main__":
    sys.exit(main())
