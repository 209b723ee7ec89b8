"""Our name server and broker, which require TLS and accounts, in a thread of their own."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

from certificates import tls_properties

from engine.broker.access import Access
from engine.broker.config import BrokerConfig
from engine.broker.server import ListeningBroker
from engine.broker.serving import Addresses
from engine.message_store import MessageStore
from engine.namesrv.server import ListeningNameServer
from engine.releases import Release
from engine.remoting.connection import bind
from engine.remoting.tls import read_tls

SECRET = "s3cret-s3cret"
ACCOUNTS = f"""\
accounts:
- accessKey: operator
  secretKey: {SECRET}
  admin: true
- accessKey: stranger
  secretKey: {SECRET}
  defaultTopicPerm: DENY
  defaultGroupPerm: DENY
"""


@contextlib.contextmanager
def guarded_beside(store_folder: Path, folder: Path, release: Release) -> Iterator[Addresses]:
    """Serve a store to clients that use TLS and sign their requests, with new certificates in ``folder``."""
    (folder / "plain_acl.yml").write_text(ACCOUNTS)
    tls, _ = read_tls(tls_properties(folder, "enforcing"))
    access = Access(folder / "plain_acl.yml", release, "DefaultCluster")
    addresses: Future[Addresses] = Future()
    loop = asyncio.new_event_loop()
    ended = asyncio.Event()

    async def serve() -> None:
        with MessageStore(store_folder, release=release) as store, bind("127.0.0.1", 0) as bound:
            async with (
                ListeningNameServer(port=0, tls=tls) as names,
                ListeningBroker(
                    store,
                    BrokerConfig(),
                    name_servers=[names.address],
                    listening_socket=bound,
                    tls=tls,
                    access=access,
                ) as server,
            ):
                addresses.set_result(Addresses(server.address, names.address))
                await ended.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
    thread.start()
    try:
        yield addresses.result(20)
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()
        loop.close()


def credential_files(folder: Path, access_key: str = "operator", secret_key: str = SECRET) -> tuple[str, ...]:
    """Write both files of a client, and return the options that name them."""
    account, tls = folder / f"{access_key}.yml", folder / "client-tls.properties"
    account.write_text(f"accessKey: {access_key}\nsecretKey: {secret_key}\n")
    tls.write_text(f"tls.client.authServer=true\ntls.client.trustCertPath={folder / 'server.pem'}\n")
    return "--account", str(account), "--tls", str(tls)
