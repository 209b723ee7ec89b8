"""Everything that MessageStore offers, in any order, held against a plain model; ``--machine-steps`` says how often."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test
from store_machine import CommonStoreMachine, PowerMachine, StoreMachine

STEPS = 30


@pytest.mark.timeout(7200)  # in full: some minutes for each machine
@pytest.mark.parametrize("machine", [StoreMachine, PowerMachine])
def test_the_promises_hold_whatever_is_done_in_whatever_order(
    machine: type[CommonStoreMachine], request: pytest.FixtureRequest
) -> None:
    steps = max(request.config.getoption("--machine-steps") // 2, STEPS)
    run_state_machine_as_test(machine, settings=settings(max_examples=steps // STEPS, stateful_step_count=STEPS))
