"""``completion``: the shell's completion of commands and options."""

from __future__ import annotations

import argparse
from typing import Any

from engine.cli.options import Parser, add_command
from engine.cli.output import Output

_BASH = """_storescope() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}"
  if [ "$COMP_CWORD" -eq 1 ]; then COMPREPLY=($(compgen -W "{commands}" -- "$word")); return; fi
  case "${{COMP_WORDS[1]}}" in
{cases}
  esac
  case "$word" in
    -*) COMPREPLY=($(compgen -W "$options" -- "$word")) ;;
    *) COMPREPLY=($(compgen -f -- "$word")) ;;
  esac
}}
complete -o filenames -F _storescope storescope
"""


def register(commands: Any) -> None:
    parser = add_command(
        commands,
        "completion",
        "completion bash > ~/.local/share/bash-completion/completions/storescope",
    )
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="the shell")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    listed = _options()
    out.line({"bash": _bash, "zsh": _zsh, "fish": _fish}[args.shell](listed))
    return 0


def _options() -> dict[str, list[str]]:
    from engine.cli.main import build_parser

    options: dict[str, list[str]] = {}
    for action in build_parser()._actions:  # noqa: SLF001 - argparse offers no other way to list its commands
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for name, parser in action.choices.items():
                if isinstance(parser, Parser):
                    options[name] = sorted(o for a in parser._actions for o in a.option_strings)  # noqa: SLF001
    return options


def _bash(listed: dict[str, list[str]]) -> str:
    cases = "\n".join(f'    {name}) local options="{" ".join(options)}" ;;' for name, options in listed.items())
    return _BASH.format(commands=" ".join(listed), cases=cases)


def _zsh(listed: dict[str, list[str]]) -> str:
    return "autoload -U +X bashcompinit && bashcompinit\n" + _bash(listed)


def _fish(listed: dict[str, list[str]]) -> str:
    lines = [f"complete -c storescope -n __fish_use_subcommand -f -a '{' '.join(listed)}'"]
    for name, options in listed.items():
        for option in options:
            if option.startswith("--"):
                lines.append(f"complete -c storescope -n '__fish_seen_subcommand_from {name}' -l {option[2:]}")
    return "\n".join(lines)
