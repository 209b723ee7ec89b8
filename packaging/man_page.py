"""Print the manual page ``storescope.1``, from the same table of commands as the pages of the documentation."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from docs import argument_words, help_text, metavar_of, sentence, subcommands


def main() -> int:
    """Print the page."""
    from engine.cli.main import build_parser

    sys.stdout.write(manual_page(build_parser()))
    return 0


def manual_page(parser: argparse.ArgumentParser) -> str:
    """Return the page in the format of ``man``."""
    from engine import __version__

    lines = [
        f'.TH STORESCOPE 1 "" "storescope {__version__}" "User commands"',
        *(".SH NAME", r"storescope \- inspect and repair Apache RocketMQ message stores"),
        *(".SH SYNOPSIS", r"\fBstorescope\fR \fICOMMAND\fR \fISTORE\fR [\fIoptions\fR]"),
        *(".SH DESCRIPTION", escaped(parser.description or "")),
        ".SH COMMANDS",
    ]
    for name, summary, command in subcommands(parser):
        lines += command_lines(f"storescope {name}", summary, command)
        for job, job_summary, job_parser in subcommands(command):
            lines += command_lines(f"storescope {name} {job}", job_summary, job_parser)
    exit_codes = "0: fine. 1: findings, or nothing found. 2: wrong usage. 3: cannot read or write. 130: interrupted."
    return "\n".join([*lines, ".SH EXIT STATUS", escaped(exit_codes)]) + "\n"


def command_lines(prog: str, summary: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yield heading, summary, arguments, options and examples of one command."""
    arguments = [action for action in parser._get_positional_actions() if action.nargs != argparse.PARSER]  # noqa: SLF001
    yield f".SS {escaped(' '.join([prog, *(argument_words(action) for action in arguments)]))}"
    yield escaped(sentence(summary))
    for action in parser._get_optional_actions():  # noqa: SLF001
        if action.help != argparse.SUPPRESS and action.dest != "help":
            value = "" if action.nargs == 0 else rf" \fI{escaped(metavar_of(action))}\fR"
            names = ", ".join(rf"\fB{escaped(name)}\fR" for name in action.option_strings)
            yield f".TP\n{names}{value}\n{escaped(help_text(action, parser))}"
    if parser.epilog:
        yield f".PP\n.nf\n{escaped(parser.epilog.strip())}\n.fi"


def escaped(text: str) -> str:
    """Return ``text`` so that ``man`` shows it unchanged."""
    text = text.replace("\\", r"\e").replace("-", r"\-")
    return "\n".join(rf"\&{line}" if line.startswith((".", "'")) else line for line in text.split("\n"))


if __name__ == "__main__":
    sys.exit(main())
