"""``storescope serve`` in a process of its own, for clients that are none of ours."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def served(store: Path, config: str, *more: str) -> Iterator[str]:
    """The name server of ``storescope serve``, as a user starts it; it ends with 0 and without a traceback."""
    conf = store.with_name("broker.conf")
    conf.write_text(config)
    words = [sys.executable, "-m", "engine.cli", "serve", str(store), "--port", "0", "--namesrv-port", "0", "--json"]
    process = subprocess.Popen(
        [*words, "--config", conf, *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    )
    try:
        yield json.loads(process.stdout.readline())["namesrv"]
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
        assert "Traceback" not in process.stderr.read()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()
