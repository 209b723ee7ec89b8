"""A client's account comes from a file, and its secret is in no message."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import CannotRead, UsageError
from engine.remoting.client_account import ClientAccount, read_client_account


def test_an_account_is_read_as_mqadmin_reads_it(tmp_path: Path) -> None:
    file = tmp_path / "tools.yml"
    file.write_text("accessKey: RocketMQ\nsecretKey: 12345678\n")
    assert read_client_account(file) == ClientAccount("RocketMQ", "12345678")
    file.write_text("accessKey: RocketMQ\nsecretKey: '12345678'\nsecurityToken: abc\n")
    assert read_client_account(file) == ("RocketMQ", "12345678", "abc")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "accessKey: RocketMQ\n",
        "accessKey: RocketMQ\nsecretKey:\n",
        "secretKey: 12345678\n",
        "secretKey 12345678\n",
        "- secretKey: 12345678\n",
        "accessKey: a\nsecretKey: {12345678\n",
    ],
)
def test_an_incomplete_file_is_refused_without_its_text(tmp_path: Path, text: str) -> None:
    file = tmp_path / "tools.yml"
    file.write_text(text)
    with pytest.raises(UsageError, match="expected the lines accessKey") as raised:
        read_client_account(file)
    assert "12345678" not in str(raised.value)


def test_an_absent_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CannotRead, match="No such file"):
        read_client_account(tmp_path / "tools.yml")


def test_an_account_is_shown_without_its_secrets() -> None:
    account = ClientAccount("RocketMQ", "12345678", "token")
    assert f"{account} {account!r} {[account]}" == "ClientAccount('RocketMQ') " * 2 + "[ClientAccount('RocketMQ')]"
