"""Mutated golden stores through every reading command: no hang, no crash, no traceback, no growth, no changed byte.

``--fuzz-cases N`` sets the number of cases, 100,000 are a full campaign; ``--fuzz-workers W`` divides them among
processes. A case is one mutated store through one reading command (see :mod:`fuzz_campaign`). A failing case names its
number: ``--fuzz-first NUMBER --fuzz-cases 1`` repeats it.
"""

from __future__ import annotations

import fuzz_campaign
import fuzz_commands
import pytest

pytestmark = [pytest.mark.fuzz, pytest.mark.timeout(0)]

STORES = (
    "propcrc-5.3.3",
    "crash-4.9.8",
    "batchcq-5.3.3",
    "multi-queue-ext-5.3.3",
    "ipv6-and-unicode-5.3.3",
    "broker-pop",
    "broker-transactions-4.9.7",
    "broker-lmq",
)


def test_every_command_survives_planted_faults(golden, tmp_path, request, fuzz_account):
    first_case, count = request.config.getoption("--fuzz-first"), request.config.getoption("--fuzz-cases")
    sources = {name: golden(name) for name in STORES}
    workers = request.config.getoption("--fuzz-workers")
    account = fuzz_campaign.run(tmp_path, sources, range(first_case, first_case + count), workers)
    fuzz_account(account.lines())
    assert not account.wrong, f"{len(account.wrong)} complaints:\n" + "\n".join(account.wrong[:12])
    assert account.cases == count
    if count >= 20 * len(fuzz_commands.NAMES):
        assert account.cases_by_command.keys() == set(fuzz_commands.NAMES)
