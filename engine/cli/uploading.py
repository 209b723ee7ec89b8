"""Asks before the Python of an archive is sent to a machine that has none (option ``--upload``)."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from engine.errors import UsageError
from engine.sentences import sentence
from engine.ssh.address import is_ssh_address, parse_address

_YES = {"y", "yes"}


def offer_upload(args: argparse.Namespace) -> None:
    """Ask about the machines of the command's stores that have no Python, and note that the user agreed.

    Raises :class:`engine.ssh.upload.NoPython` if the user did not agree, :class:`UsageError` if nobody can be asked.
    """
    from engine.ssh.connection import SshConnection
    from engine.ssh.upload import UPLOAD_VARIABLE, NoPython

    stores = args.store if isinstance(args.store, list) else [args.store]
    addresses = [parse_address(store) for store in stores if is_ssh_address(store)]
    if not addresses:
        raise UsageError(sentence("--upload belongs to a store on another machine: expected ssh://USER@HOST/path"))
    archive = args.upload.resolve()
    for address in addresses:
        try:
            SshConnection(address).close()
        except NoPython:
            _ask(address.host, archive)
            os.environ[UPLOAD_VARIABLE] = str(archive)
            return


def _ask(host: str, archive: Path) -> None:
    """Raise :class:`engine.ssh.upload.NoPython` if the user does not agree."""
    from engine.ssh.upload import FOLDER_NAMES, UPLOAD_VARIABLE, NoPython, pack_python

    size = len(pack_python(archive)) / (1 << 20)
    folders = f"{', '.join(FOLDER_NAMES[:-1])} or {FOLDER_NAMES[-1]}"
    lines = [
        f"{host} has no Python 3.7 or newer.",
        f"{size:.1f} MiB of {archive.name} would be sent there: its Python, into a new folder storescope-upload-…",
        f"below {folders}, which only you can read. It is removed when the connection ends.",
        "The store is only read.",
    ]
    for line in lines:
        print(line, file=sys.stderr)
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(
            sentence(
                "nothing was sent: there is no terminal to ask on; set {variable}={archive} to agree beforehand",
                variable=UPLOAD_VARIABLE,
                archive=str(archive),
            )
        )
    print("Send it? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in _YES:
        raise NoPython(sentence("nothing was sent, so nothing can be read there"), file=host)
