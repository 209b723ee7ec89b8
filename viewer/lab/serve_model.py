"""The state of the lab's Serve panel: what its form asks for, and what the served store has reported. No Qt."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from viewer.lab.serve_rows import ClientRow, CodeRow, ServeHistory, address_facts, client_rows, code_rows, rate_of
from viewer.look.assets import tr, tr_plural
from viewer.widgets.facts import Fact

if TYPE_CHECKING:
    from engine.lab.samples import ServeSettings
    from engine.lab.serving import ServingState

BROKER_PORT, NAMESRV_PORT = 10911, 9876
MAX_PORT = 65_535


@dataclass(frozen=True, slots=True)
class ServeForm:
    """The texts of the form. An empty port follows ``config``, a ``broker.conf``, or the broker's port."""

    port: str = ""
    namesrv: str = ""
    ha: str = ""
    vip: bool = True
    config: str = ""

    @property
    def _has_file(self) -> bool:
        return bool(self.config.strip())

    @property
    def _broker_port(self) -> int:
        return int(self.port) if self.port else BROKER_PORT

    def placeholders(self) -> tuple[str, str, str]:
        """Return what stands for an empty port of the broker, of the name server, and for HA."""
        ha_unknown = self._has_file or not self._broker_port
        broker = "…" if self._has_file else str(BROKER_PORT)
        return broker, str(NAMESRV_PORT), "…" if ha_unknown else str(self._broker_port + 1)

    def vip_words(self) -> str:
        """Return the name of the VIP port, with its number if it is known."""
        unknown = not self._broker_port or (self._has_file and not self.port)
        return tr("VIP") if unknown else tr("VIP {port}", port=self._broker_port - 2)

    def _ports(self) -> tuple[int | None, int | None, int | None]:
        broker, namesrv, ha = (int(text) if text else None for text in (self.port, self.namesrv, self.ha))
        return broker, namesrv, ha

    def fault(self) -> str:
        """Return why the store cannot be served like this. Empty if it can."""
        ports = [port for port in self._ports() if port]  # 0 takes a free port
        too_large = next((port for port in ports if port > MAX_PORT), None)
        if too_large is not None:
            return tr("{port} is not a port: expected 0 to 65,535", port=too_large)
        if len(set(ports)) < len(ports):
            return tr("{port} is named twice: each needs a port of its own", port=max(ports, key=ports.count))
        return ""

    def settings(self) -> ServeSettings:
        """Return the settings for serving the store."""
        from engine.lab.samples import ServeSettings

        config = Path(self.config.strip()).expanduser() if self._has_file else None
        return ServeSettings(*self._ports(), vip=self.vip, config=config)


@dataclass
class ServeModel:
    """The newest state of a served store, and the series drawn of it."""

    state: ServingState | None = None
    """None while the store is not served."""
    history: ServeHistory = field(default_factory=ServeHistory)
    _previous: ServingState | None = None
    """The state before the newest one: the rates are counted from there."""

    def take(self, state: ServingState | None, now_s: float) -> None:
        """Take a state that came at the time ``now_s``; None if the store is not served any more."""
        previous, self.state = self.state, state
        if state is None:
            self._previous = None
            self.history.clear()
            return
        if previous is not None and previous.clock_s < state.clock_s:
            self._previous = previous
        self.history.take(state, now_s)

    def codes(self) -> list[CodeRow]:
        """Return the rows by code, most requested first."""
        return code_rows(self.state, self._previous, self.history.roles) if self.state is not None else []

    def clients(self) -> list[ClientRow]:
        """Return the connected clients."""
        return client_rows(self.state) if self.state is not None else []

    def addresses(self) -> list[Fact]:
        """Return the addresses for clients, and the status of the server."""
        return address_facts(self.state) if self.state is not None else []

    def head_note(self) -> str:
        """Return the requests a second, or what serving is while the store is not served."""
        if self.state is None:
            return tr("name server and broker on this store, for any client")
        rate = rate_of(self.codes())
        if rate is None:
            return ""
        return tr_plural("{n:,} request a second", "{n:,} requests a second", n=round(rate))
