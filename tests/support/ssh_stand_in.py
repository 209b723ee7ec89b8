"""A stand-in for the ssh command: it runs the command for the other machine on this one, in a shell of its own."""

from __future__ import annotations

from pathlib import Path

from engine.ssh.connection import SSH_VARIABLE

MACHINE = "ssh:/someone@elsewhere"


def install_stand_in(folder: Path, monkeypatch, *, before: str = "", outlives: bool = False) -> None:
    """Let the engine use the stand-in. ``before`` are lines of shell that run first, as start files of a shell do.

    With ``outlives`` the shell of the other machine goes on when the stand-in is killed, as behind a real ssh.
    """
    script, run = folder / "ssh", "" if outlives else "exec"
    script.write_text(f'#!/bin/sh\n{before}\nfor word; do command=$word; done\n{run} sh -c "$command"\n')
    script.chmod(0o700)
    monkeypatch.setenv(SSH_VARIABLE, f"'{script}'")


def on_machine(path: Path) -> Path:
    """Return the path by which a store of this machine is named as one of another."""
    return Path(f"{MACHINE}{path}")
