"""A command that runs on the machine of its store, where Storescope is installed there: only its output comes here."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Sequence

from engine import __version__
from engine.cli.output import Output
from engine.errors import CannotRead
from engine.sentences import sentence
from engine.ssh.address import SshAddress, parse_address
from engine.ssh.connection import ssh_command

_PLACES = ("storescope", "~/.local/bin/storescope")
_SSH_FAILED = 255


def run_there(store: str, arguments: Sequence[str], out: Output) -> int | None:
    """Run the command line ``arguments`` on the machine of ``store`` and return its exit code.

    Returns None if this version of Storescope is not installed there. Raises :class:`CannotRead` without a connection.
    """
    address = parse_address(store)
    words = [_path_there(address) if word == store else shlex.quote(word) for word in arguments]
    search = "; ".join(
        f'p=$(command -v {place} 2>/dev/null) && [ -n "$p" ] && "$p" --version && exec "$p" {" ".join(words)}'
        for place in _PLACES
    )
    command = ssh_command(address, f"exec sh -c {shlex.quote(f'{search}; echo none')}")
    try:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)  # noqa: S603
    except OSError as error:
        raise CannotRead(sentence("the program ssh cannot be started"), file=str(address)) from error
    with process:
        assert process.stdout is not None
        version = process.stdout.readline().strip()
        if version != f"storescope {__version__}":
            process.kill()
            if not version and process.wait() == _SSH_FAILED:
                raise CannotRead(sentence("no connection to {host}", host=address.host), file=str(address))
            return None
        out.say(f"run by {version} on {address.host}; paths and commands are those of that machine")
        for line in process.stdout:
            sys.stdout.write(line)
    if process.returncode == _SSH_FAILED:
        raise CannotRead(sentence("no connection to {host}", host=address.host), file=str(address))
    return process.returncode


def _path_there(address: SshAddress) -> str:
    """Return the path as a word for the shell there."""
    if address.path == "/~" or address.path.startswith("/~/"):
        return f"~{shlex.quote(address.path[2:])}" if address.path != "/~" else "~"
    return shlex.quote(address.path)
