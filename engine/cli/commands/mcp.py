"""``mcp``: a server of the Model Context Protocol for one store, over standard input and output."""

from __future__ import annotations

import argparse
from typing import Any

from engine.cli.options import add_command, add_masking, add_store, common_options, masking, open_named_store
from engine.cli.output import Output
from engine.errors import UsageError
from engine.extras import line_of
from engine.sentences import sentence


def register(commands: Any) -> None:
    parser = add_command(
        commands,
        "mcp",
        "mcp ~/store",
        "mcp ~/store --mask bodies,keys,hosts",
        parents=[common_options()],
    )
    add_store(parser)
    add_masking(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    """Serve until the client closes standard input."""
    try:
        from engine.cli import agent_server
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] not in {"anyio", "jsonschema", "mcp", "mcp_types"}:
            raise
        raise UsageError(sentence("mcp needs the package mcp: install it with {line}", line=line_of("mcp"))) from None
    from engine.cli.agent_tools import StoreTools

    with open_named_store(args, out):
        pass  # what is no store is refused here, before a client connects
    return agent_server.serve(StoreTools(args.store, _config_words(args), masking(args)), args.store)


def _config_words(args: argparse.Namespace) -> tuple[str, ...]:
    """Return the options about the configuration as every tool's command takes them."""
    words = [f"--config={args.config}"] if args.config else []
    words += ["--paths-from-config"] if args.paths_from_config else []
    words += ["--ignore-config-paths"] if args.ignore_config_paths else []
    return tuple(words)
