"""An S3 server from a package, as a process of its own: objects are in memory, and gone with it."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

KEYS = {"AWS_ACCESS_KEY_ID": "storescope", "AWS_SECRET_ACCESS_KEY": "storescope", "AWS_EC2_METADATA_DISABLED": "true"}
"""What the server takes for rights, and that no other is asked for them."""


@contextlib.contextmanager
def s3_server() -> Iterator[str]:
    """Yield the URL of the server, which ends with the block."""
    command = [sys.executable, "-u", "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
        try:
            assert server.stdout is not None
            lines = iter(server.stdout.readline, "")
            actual_url = next((url for line in lines if (url := re.search(r"http://127\.0\.0\.1:\d+", line))), None)
            assert actual_url is not None, "the S3 server did not start"
            threading.Thread(target=server.stdout.read, daemon=True).start()  # its log must not fill the pipe
            yield actual_url[0]
        finally:
            server.terminate()


def upload(folder: Path, bucket: str, prefix: str, url: str) -> None:
    """Upload every file below ``folder`` as an object of ``bucket``, named below ``prefix``."""
    from pyarrow import fs

    system = fs.S3FileSystem(
        access_key=KEYS["AWS_ACCESS_KEY_ID"],
        secret_key=KEYS["AWS_SECRET_ACCESS_KEY"],
        endpoint_override=url,
        region="us-east-1",
        allow_bucket_creation=True,
    )
    system.create_dir(bucket)
    fs.copy_files(str(folder), f"{bucket}/{prefix}", destination_filesystem=system, use_threads=False)
