"""The user's own clients as the window sees them. All run in one process, which starts with the first client and
ends with the window.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from multiprocessing.process import BaseProcess

from PySide6.QtCore import QObject, Signal

from engine import system
from engine.sentences import sentence
from viewer.cluster.access import NO_FILES
from viewer.cluster.clients_process import DEFAULT_OPTIONS, ClientActivity, ClientSpec, ClientStatus, Options, serve
from viewer.runtime.loop_calls import open_mailbox, post
from viewer.runtime.worker import quiet_main

UNREGISTER_TIMEOUT_S = 3.0
"""Seconds for clients to unregister when the window closes."""


@dataclass(frozen=True, slots=True)
class OwnClientRow:
    """A client as the window knows it."""

    spec: ClientSpec
    status: str = "starting"
    client_id: str = ""
    error: str = ""
    paused: bool = False
    delay: float = 0.0
    sent: int = 0

    @property
    def runs(self) -> bool:
        return self.status in {"starting", "running"}


class OwnClients(QObject):
    """The clients that this window runs.

    Emits ``changed()`` when a client starts, ends or reports, ``activityReported(ClientActivity)`` with their activity.
    """

    changed = Signal()
    activityReported = Signal(object)

    def __init__(self, parent: QObject | None = None, post_: Callable[..., None] = post) -> None:
        super().__init__(parent)
        open_mailbox()
        self.rows: dict[int, OwnClientRow] = {}
        self.access = NO_FILES
        """The files with which new clients connect."""
        self._post = post_
        self._number = 0
        self._process: BaseProcess | None = None
        self._pipe: system.PipeEnd | None = None

    @property
    def running(self) -> int:
        """Number of running clients, without brokers of lessons."""
        return sum(row.runs and row.spec.kind != "broker" for row in self.rows.values())

    @property
    def ended_brokers(self) -> set[str]:
        """Names of brokers of lessons that have ended."""
        return {row.spec.group for row in self.rows.values() if row.spec.kind == "broker" and not row.runs}

    def find(self, client_id: str) -> OwnClientRow | None:
        """Return the running client of ours with this id."""
        return next((row for row in self.rows.values() if client_id and row.client_id == client_id and row.runs), None)

    def ended(self, client_id: str) -> OwnClientRow | None:
        """Return the ended client of ours with this id."""
        rows = (row for row in self.rows.values() if client_id and row.client_id == client_id and not row.runs)
        return next(rows, None)

    def row(self, number: int) -> OwnClientRow:
        """Return the status of a client. Raises ``KeyError``."""
        return self.rows[number]

    @property
    def last(self) -> int:
        """Number of the client that was added last."""
        return self._number

    def add(
        self,
        kind: str,
        addresses: tuple[str, ...],
        group: str,
        topic: str,
        amount: float,
        options: Options = DEFAULT_OPTIONS,
    ) -> OwnClientRow:
        """Start a producer of ``amount`` messages a second, a consumer that takes ``amount`` ms for each, or a
        broker.
        """
        self._number += 1
        spec = ClientSpec(
            self._number,
            kind,
            addresses,
            group,
            topic,
            rate=amount if kind == "producer" else 0.0,
            delay=amount / 1000 if kind == "consumer" else 0.0,
            options=options,
            access=self.access,
        )
        row = self.rows[spec.number] = OwnClientRow(spec, delay=spec.delay)
        self._send_command("add", spec)
        self.changed.emit()
        return row

    def slow(self, number: int, seconds: float) -> None:
        """Make each message take ``seconds`` longer."""
        self._change(number, delay=seconds)
        self._send_command("slow", number, seconds)

    def pause(self, number: int) -> None:
        """Pause or resume a client."""
        row = self.rows.get(number)
        if row is not None and row.runs:
            self._change(number, paused=not row.paused)
            self._send_command("resume" if row.paused else "pause", number)

    def stop(self, number: int) -> None:
        """Stop a client after unregistering; a broker of a lesson counts as ended at once."""
        if number in self.rows and self.rows[number].spec.kind == "broker":
            self._change(number, status="stopped")
        self._send_command("stop", number)

    def kill(self, number: int) -> None:
        """End a client like a killed process."""
        self._send_command("kill", number)

    def forget(self, addresses: tuple[str, ...], topics: tuple[str, ...], groups: tuple[str, ...]) -> None:
        """Delete what a lesson created, after all earlier commands."""
        self._send_command("forget", addresses, topics, groups, self.access)

    def close(self) -> None:
        """Stop all clients and end the process."""
        process, pipe = self._process, self._pipe
        self._process = self._pipe = None
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.send(("end",))
        if process is not None:
            process.join(UNREGISTER_TIMEOUT_S)
            if process.is_alive():
                process.terminate()
                process.join(1)
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
        for number, row in self.rows.items():
            if row.runs:
                self.rows[number] = replace(row, status="stopped")

    # ---- the process -------------------------------------------------------------------------------------------------

    def _send_command(self, *command: object) -> None:
        if self._process is None or not self._process.is_alive():
            self._start()
        if self._pipe is not None:
            with contextlib.suppress(OSError):
                self._pipe.send(command)

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        self._pipe = ours
        self._process = context.Process(target=serve, args=(theirs,), name="storescope-clients", daemon=True)
        with quiet_main():
            self._process.start()
        theirs.close()
        threading.Thread(target=self._listen, args=(ours,), name="clients-pipe", daemon=True).start()

    def _listen(self, pipe: system.PipeEnd) -> None:
        """Read the pipe in a thread."""
        while True:
            try:
                value = pipe.recv()
            except (EOFError, OSError):
                self._post(self._ended, pipe)
                return
            self._post(self._on_report, value)

    def _on_report(self, value: ClientStatus | ClientActivity) -> None:
        if isinstance(value, ClientStatus):
            self._change(value.number, status=value.status, client_id=value.client_id, error=value.error)
            return
        for client_id, count in value.sent.items():
            row = self.find(client_id)
            if row is not None:
                self.rows[row.spec.number] = replace(row, sent=row.sent + count)
        self.activityReported.emit(value)

    def _ended(self, pipe: system.PipeEnd) -> None:
        """Mark all clients as ended: their process has ended."""
        if self._pipe is not pipe:
            return
        self._process = self._pipe = None
        for number, row in self.rows.items():
            if row.runs:
                self.rows[number] = replace(row, status="killed", error=sentence("their process ended"))
        self.changed.emit()

    def _change(self, number: int, **values: object) -> None:
        row = self.rows.get(number)
        if row is not None:
            self.rows[number] = replace(row, **values)  # type: ignore[arg-type]
            self.changed.emit()
