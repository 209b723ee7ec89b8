"""The files that a secured cluster needs: an account that signs requests, and the settings of TLS. No Qt.

Only their paths are passed on and saved; what is in them is read where it is used.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass

from engine.remoting.client_account import ClientAccount, read_client_account
from engine.remoting.tls import read_client_tls


@dataclass(frozen=True, slots=True)
class AccessFiles:
    """Paths of a ``tools.yml`` and a ``tls.properties``; an empty one stands for none."""

    account: str = ""
    tls: str = ""

    def read_account(self) -> ClientAccount | None:
        """Read the account. Raises :class:`engine.errors.CannotRead` and :class:`engine.errors.UsageError`."""
        return read_client_account(self.account) if self.account else None

    def read_tls(self) -> ssl.SSLContext | None:
        """Read the settings of TLS. Raises as :meth:`read_account`."""
        return read_client_tls(self.tls)[0] if self.tls else None

    def options(self) -> list[str]:
        """Return the options of a command line that say the same."""
        named_files = (("--account", self.account), ("--tls", self.tls))
        return [word for option, path in named_files if path for word in (option, path)]


NO_FILES = AccessFiles()
