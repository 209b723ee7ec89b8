"""The power fails at every disk call of a scripted run, in each flush mode, with many possible disks afterwards.

No message acknowledged by SYNC_FLUSH, or reported as flushed, is lost; nothing is invented; the store opens; a second
recovery changes nothing, and one that is itself interrupted has the same result. ``--power-runs`` does more runs.
"""

from __future__ import annotations

import logging
import random

import pytest
from power_loss import MODES, Clock, PutLedger, StoreLifetime, verify
from simulated_disk import PowerLoss, SimulatedDisk

pytestmark = pytest.mark.crash
STEPS = 30
LIVES = 4


@pytest.fixture(autouse=True)
def _quiet():
    """Silence the log: thousands of broken stores write to it."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def pytest_generate_tests(metafunc):
    if "seed" in metafunc.fixturenames:
        first_seed, runs = metafunc.config.getoption("--power-first"), metafunc.config.getoption("--power-runs")
        metafunc.parametrize("seed", range(first_seed, first_seed + runs))


@pytest.mark.timeout(0)
@pytest.mark.parametrize("mode", MODES)
def test_the_power_fails_at_every_call(mode, seed):
    rng = random.Random(seed)
    clock, ledger = Clock(), PutLedger()

    def look(number, kind, path):
        ledger.note_call(kind, path)
        try:
            verify(disk.after_power_loss(rng), life, life.flushed, rng)
        except BaseException as error:
            error.add_note(f"cut at call {number}: {kind} {path}")
            raise

    disk = SimulatedDisk(clock=clock, on_call=look, write_back=random.Random(seed))
    life = StoreLifetime(mode, seed, disk, ledger, clock)
    life.run(STEPS, close=seed % 2 == 0)
    assert disk.calls


@pytest.mark.timeout(0)
@pytest.mark.parametrize("mode", MODES)
def test_a_store_lives_on_after_each_power_loss(mode, seed):
    """A message that was cut away once never comes back, though its bytes may stay in the file for long."""
    rng = random.Random(seed)
    clock, ledger = Clock(), PutLedger()
    disk = SimulatedDisk(clock=clock)
    for number in range(LIVES):
        disk.crash_at = disk.calls + rng.randint(1, 120)
        disk.on_call = lambda _, kind, path: ledger.note_call(kind, path)
        life = StoreLifetime(mode, 100 * seed + number, disk, ledger, clock)
        try:
            life.run(STEPS, close=rng.random() < 0.5)
        except PowerLoss:
            pass
        else:
            disk.cut_power()
        flushed = life.flushed
        disk = disk.after_power_loss(rng)
        ledger.keep(verify(disk.after_power_loss(rng, keep=1.0), life, flushed, rng).units)
