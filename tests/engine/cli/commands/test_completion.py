"""``completion``: the scripts for shells."""

from __future__ import annotations

import subprocess

import agree
import pytest


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_every_command(shell):
    status, out, err = agree.command("completion", shell)
    assert (status, err) == (0, "")
    for word in ("info", "units", "queryMsgByKey", "where"):
        assert word in out
    if shell == "bash":
        check = "complete -p storescope; COMP_WORDS=(storescope units --li); COMP_CWORD=2; "
        check += "_storescope; echo ${COMPREPLY[@]}"
        stdout = subprocess.run(["bash", "-c", out + check], capture_output=True, text=True, check=True).stdout
        assert "-F _storescope" in stdout
        assert stdout.endswith("--limit\n")
