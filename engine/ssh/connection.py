"""The pipe to a file server on another machine: requests, answers, and a new pipe when one breaks."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shlex
import subprocess
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from importlib import resources
from typing import IO, Any

from engine.errors import CannotRead
from engine.sentences import sentence
from engine.ssh import file_server
from engine.ssh.address import SshAddress
from engine.ssh.upload import UNPACKED, NoPython, agreed_archive, pack_python, uploaded_python_command

SSH_VARIABLE = "STORESCOPE_SSH"
"""Environment variable with the command that is used instead of ``ssh``."""
_OPTIONS = ("-T", "-o", "ConnectTimeout=15", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=4")
_NO_PYTHON = "storescope: no Python 3.7 or newer on this machine"
_PYTHONS = ("python3", "/usr/libexec/platform-python", "python")
_START = 'import sys;s=sys.stdin.buffer;exec(compile(s.read(int(s.readline())),"storescope","exec"))'
_MAX_GREETING_BYTES = 64 << 10
_MAX_ANSWER_BYTES = 64 << 20
_RECONNECT_DELAYS_S = (0.0, 1.0, 3.0)
_REST_S = 5.0
"""After a failed reconnect, requests fail at once for so long."""

Answer = tuple[dict[str, Any], bytes]


class ConnectionLost(OSError):
    """The pipe broke before an answer came."""


def file_server_command() -> str:
    """Return the command for the shell there that starts the file server in the first new enough Python that it has."""
    is_new_enough = shlex.quote("import sys; sys.exit(sys.version_info < (3, 7))")
    search = "; ".join(
        f"{python} -c {is_new_enough} >/dev/null 2>&1 </dev/null && exec {python} -u -c {shlex.quote(_START)}"
        for python in _PYTHONS
    )
    script = f"{search}; echo '{_NO_PYTHON}' >&2; exit 127"
    return f"exec sh -c {shlex.quote(script)}"


def ssh_command(address: SshAddress, remote: str) -> list[str]:
    """Return the command line that runs ``remote`` in a shell of the machine."""
    command = shlex.split(os.environ.get(SSH_VARIABLE, "")) or ["ssh"]
    port = [] if address.port is None else ["-p", str(address.port)]
    user = [] if not address.user else ["-l", address.user]
    return [*command, *_OPTIONS, *port, *user, "--", address.host, remote]


class _Pipe:
    """One run of the ssh command. Answers are dispatched by a thread of its own.

    With ``upload`` the file server runs in that Python (:mod:`engine.ssh.upload`), else in one of the machine.
    """

    def __init__(self, address: SshAddress, upload: bytes | None = None) -> None:
        self._lock = threading.Lock()
        self._pending: dict[int, Future[Answer]] = {}
        self._last_id = 0
        self._is_broken = False
        self.last_words: deque[str] = deque(maxlen=20)
        """The last lines that ssh wrote to its error output."""
        self._upload = upload
        there = file_server_command() if upload is None else uploaded_python_command(len(upload), _START)
        command, pipe = ssh_command(address, there), subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0)  # noqa: S603 (no shell)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self._input: IO[bytes] = self.process.stdin
        self._output: IO[bytes] = self.process.stdout
        self._errors = threading.Thread(
            target=self._read_errors, args=(self.process.stderr,), name="ssh errors", daemon=True
        )
        self._errors.start()
        self._answers = threading.Thread(target=self._read_answers, name="ssh answers", daemon=True)

    def start(self) -> None:
        """Start the file server. Raises ``OSError`` if that fails; :attr:`last_words` say why."""
        source = resources.files("engine.ssh").joinpath("file_server.py").read_bytes()
        try:
            if self._upload is not None:
                self._write(self._upload)
                self._skip_to(UNPACKED)
            self._write(b"%d\n%s" % (len(source), source))
            self._skip_to(file_server.MARK)
        except OSError:
            self.close()
            raise
        self._answers.start()

    @property
    def is_broken(self) -> bool:
        return self._is_broken

    def send(self, request: dict[str, Any]) -> Future[Answer]:
        """Send a request; its answer comes as the result of the future, :class:`ConnectionLost` if it never does."""
        future: Future[Answer] = Future()
        with self._lock:
            if self._is_broken:
                future.set_exception(ConnectionLost())
                return future
            self._last_id += 1
            request_id = self._last_id
            self._pending[request_id] = future
            header = json.dumps({**request, "id": request_id}).encode("ascii")
            try:
                self._write(file_server.FRAME.pack(len(header), 0) + header)
            except OSError:
                self._is_broken = True
                self._pending.pop(request_id)
                future.set_exception(ConnectionLost())
        return future

    def close(self) -> None:
        """End the ssh command."""
        self._is_broken = True
        with contextlib.suppress(OSError):
            self._input.close()
        try:
            self.process.wait(0.5)
        except subprocess.TimeoutExpired:
            self.process.terminate()
            try:
                self.process.wait(2)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        for thread in (self._answers, self._errors):
            if thread.is_alive() and thread is not threading.current_thread():
                thread.join(2)
        self._output.close()
        self._fail_pending()

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[self._input.write(view) :]

    def _skip_to(self, mark: bytes) -> None:
        """Read up to the end of ``mark``: start files of a shell may print something in front of it."""
        greeting = b""
        while not greeting.endswith(mark):
            byte = self._output.read(1)
            if not byte or len(greeting) > _MAX_GREETING_BYTES:
                raise ConnectionLost
            greeting += byte

    def _read_errors(self, errors: IO[bytes]) -> None:
        with errors:
            for line in errors:
                text = line.decode("utf-8", "replace").strip()
                if text:
                    self.last_words.append(text)

    def _read_answers(self) -> None:
        try:
            while True:
                header_bytes, data_bytes = file_server.FRAME.unpack(self._read_exactly(file_server.FRAME.size))
                if header_bytes + data_bytes > _MAX_ANSWER_BYTES:
                    return
                header = json.loads(self._read_exactly(header_bytes))
                data = self._read_exactly(data_bytes)
                if header.get("packed"):
                    data = _unpacked(data)
                with self._lock:
                    future = self._pending.pop(header["id"])
                future.set_result((header, data))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):  # the pipe ended, or no file server answers
            return
        finally:
            self._is_broken = True
            self._fail_pending()

    def _read_exactly(self, size: int) -> bytes:
        pieces, missing = [], size
        while missing:
            piece = self._output.read(min(missing, 1 << 20))
            if not piece:
                raise ConnectionLost
            pieces.append(piece)
            missing -= len(piece)
        return b"".join(pieces)

    def _fail_pending(self) -> None:
        with self._lock:
            pending, self._pending = self._pending, {}
        for future in pending.values():
            if not future.done():
                future.set_exception(ConnectionLost())


def _unpacked(data: bytes) -> bytes:
    """Inflate ``data``. Raises ``ValueError`` if it is damaged, or larger than any answer."""
    inflater = zlib.decompressobj()
    try:
        unpacked = inflater.decompress(data, _MAX_ANSWER_BYTES)
    except zlib.error as error:
        raise ValueError from error
    if inflater.unconsumed_tail or not inflater.eof:
        raise ValueError
    return unpacked


class SshConnection:
    """Requests to the file server on a machine. Safe to use from several threads.

    A pipe that breaks is replaced, and requests without an answer are sent again: none of them changes anything.
    """

    def __init__(self, address: SshAddress, clock: Callable[[], float] = time.monotonic) -> None:
        """Connect. Raises :class:`CannotRead` with what ssh said, :class:`NoPython` if nothing can answer there."""
        self.address = address
        self._clock = clock
        self._lock = threading.RLock()
        self._is_closed = False
        self._failed_at: float | None = None
        self._upload: bytes | None = None
        try:
            self._connect()
        except NoPython:
            archive = agreed_archive()
            if archive is None:
                raise
            self._upload = pack_python(archive)
            self._connect()
        self.server = self.request({"request": "hello"})[0]
        if self.server.get("version") != file_server.VERSION:
            self.close()
            raise CannotRead(sentence("another program answers there"), file=str(address))

    def _connect(self) -> None:
        try:
            self._pipe = _Pipe(self.address, self._upload)
        except OSError as error:
            raise CannotRead(sentence("the program ssh cannot be started"), file=str(self.address)) from error
        try:
            self._pipe.start()
        except OSError as error:
            if list(self._pipe.last_words)[-1:] != [_NO_PYTHON]:
                raise CannotRead(self._reason(), file=str(self.address)) from error
            text = sentence(
                "no Python 3.7 or newer on {host}: --upload ARCHIVE sends that of Storescope's small archive there, "
                "and asks before",
                host=self.address.host,
            )
            raise NoPython(text, file=str(self.address)) from error

    def close(self) -> None:
        """End the connection; requests fail afterwards."""
        with self._lock:
            self._is_closed = True
            self._pipe.close()

    def send(self, request: dict[str, Any]) -> Future[Answer]:
        """Send a request without waiting; the future fails with :class:`ConnectionLost` if the pipe breaks."""
        return self._pipe.send(request)

    def request(self, request: dict[str, Any], sent: Future[Answer] | None = None) -> Answer:
        """Return the answer to a request, which may have been ``sent`` already.

        Raises the ``OSError`` of the far side, or one that says that the connection is lost.
        """
        for delay in _RECONNECT_DELAYS_S:
            future = sent or self.send(request)
            try:
                answer, data = future.result()
            except ConnectionLost:
                sent = None
                self._reconnect(delay)
                continue
            if "error" in answer:
                number = getattr(errno, str(answer["error"]), errno.EIO)
                raise OSError(number, os.strerror(number) if number != errno.EIO else str(answer["text"]))
            return answer, data
        raise self._lost()

    def request_for(self, path: str, request: dict[str, Any], sent: Future[Answer] | None = None) -> Answer:
        """Return the same as :meth:`request`; an error names ``path``."""
        try:
            return self.request(request, sent)
        except OSError as error:
            error.filename = path
            raise

    def _reconnect(self, delay: float) -> None:
        """Replace a broken pipe; does nothing if another thread has done it already. Raises ``OSError``."""
        with self._lock:
            if not self._pipe.is_broken:
                return
            is_resting = self._failed_at is not None and self._clock() - self._failed_at < _REST_S
            if self._is_closed or is_resting:
                raise self._lost()
            time.sleep(delay)
            self._pipe.close()
            try:
                self._pipe = _Pipe(self.address, self._upload)
                self._pipe.start()
                self._failed_at = None
            except OSError:
                if delay == _RECONNECT_DELAYS_S[-1]:
                    self._failed_at = self._clock()

    def _lost(self) -> OSError:
        return OSError(errno.ENOTCONN, self._reason())

    def _reason(self) -> str:
        """Return why the machine cannot be reached: the last words of ssh."""
        words = list(self._pipe.last_words)
        if words:
            return sentence("no connection to {host}: {why}", host=self.address.host, why=words[-1])
        return sentence("no connection to {host}", host=self.address.host)
