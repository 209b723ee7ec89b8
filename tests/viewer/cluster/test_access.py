"""The files of a secured cluster."""

from __future__ import annotations

from pathlib import Path

from guarded_broker import credential_files

from viewer.cluster.access import NO_FILES, AccessFiles


def test_files_are_read_where_they_are_used_and_named_as_on_the_command_line(tmp_path: Path):
    assert (NO_FILES.read_account(), NO_FILES.read_tls(), NO_FILES.options()) == (None, None, [])
    options = credential_files(tmp_path)
    Path(options[-1]).write_text("tls.client.authServer=false\n")
    files = AccessFiles(options[options.index("--account") + 1], options[options.index("--tls") + 1])
    account = files.read_account()
    assert account is not None
    assert account.access_key == "operator"
    assert account.secret_key not in repr(files)
    assert files.read_tls() is not None
    assert sorted(files.options()) == sorted(options)
