"""The far side answers what it is asked, and nothing that it is asked changes a file."""

from __future__ import annotations

import hashlib
import io
import json
import os

import pytest

from engine.ssh import file_server
from engine.ssh.file_server import BLOCK_BYTES, FRAME, MARK, block_hash, serve


def ask(*requests):
    """Return the answers to some requests: header and data of each."""
    source, target = io.BytesIO(), io.BytesIO()
    for number, request in enumerate(requests):
        header = json.dumps({**request, "id": number}).encode()
        source.write(FRAME.pack(len(header), 0) + header)
    source.seek(0)
    serve(source, target)
    target.seek(0)
    assert target.read(len(MARK)) == MARK
    answers = []
    while head := target.read(FRAME.size):
        header_bytes, data_bytes = FRAME.unpack(head)
        answers.append((json.loads(target.read(header_bytes)), target.read(data_bytes)))
    assert [answer["id"] for answer, _ in answers] == list(range(len(requests)))
    return answers


def facts_and_digests(folder):
    """Return everything below a folder: the system's information and the digest of each file."""
    return {
        str(path): (
            path.lstat().st_mode,
            path.lstat().st_mtime_ns,
            path.is_file() and hashlib.sha256(path.read_bytes()).digest(),
        )
        for path in [folder, *folder.rglob("*")]
    }


def test_blocks_that_are_known_are_not_sent_again(tmp_path):
    file = tmp_path / "file"
    blocks = [os.urandom(BLOCK_BYTES), bytes(BLOCK_BYTES), b"the end"]
    file.write_bytes(b"".join(blocks))
    identity = [file.stat().st_dev, file.stat().st_ino]
    request = {"request": "read", "path": str(file), "identity": identity, "position": 0, "size": 4 * BLOCK_BYTES}
    known = [block_hash(blocks[0]), None, block_hash(b"other"), None]
    [(answer, _)] = ask({**request, "known": known})
    assert answer["lengths"] == [-1, BLOCK_BYTES, len(blocks[2]), 0]
    assert answer["packed"], "zeros are sent small"


def test_another_file_of_the_same_name_is_refused(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"first")
    identity = [file.stat().st_dev, file.stat().st_ino]
    (tmp_path / "new").write_bytes(b"other")
    (tmp_path / "new").rename(file)
    request = {"request": "read", "path": str(file), "identity": identity, "position": 0, "size": 5, "known": [None]}
    assert ask(request)[0][0]["error"] == "ESTALE"


@pytest.mark.parametrize("name", ["serve", "_forget", "__init__", "remove", ""])
def test_only_the_requests_of_the_list_are_answered(name):
    assert ask({"request": name, "path": "/"})[0][0]["error"] == "EINVAL"


def test_no_request_changes_anything(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_bytes(b"content")
    (tmp_path / "lock").touch()
    (tmp_path / "link").symlink_to("nothing")
    before = facts_and_digests(tmp_path)
    values = {"follow": False, "limit": 9, "identity": [0, 0], "position": 0, "size": 9, "known": [None]}
    paths = [
        str(path)
        for path in (tmp_path, tmp_path / "folder" / "file", tmp_path / "lock", tmp_path / "link", tmp_path / "absent")
    ]
    answers = ask(*({"request": name, "path": path, **values} for name in file_server.REQUESTS for path in paths))
    assert len(answers) == len(file_server.REQUESTS) * len(paths)
    assert facts_and_digests(tmp_path) == before


def test_requests_without_their_values_are_errors_not_the_end():
    answers = ask({"request": "read"}, {"request": "stat", "path": -1, "follow": True}, {"request": "hello"})
    assert [answer.get("error") for answer, _ in answers] == ["EINVAL", "EINVAL", None]
