"""Random sequences of all MessageStore operations, compared with a plain model; ``--machine-steps`` sets their
number.
"""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test
from store_machine import CommonStoreMachine, PowerMachine, StoreMachine

STEPS = 30


@pytest.mark.timeout(7200)  # the full form takes some minutes for each machine
@pytest.mark.parametrize("machine", [StoreMachine, PowerMachine])
def test_the_promises_hold_for_any_sequence_of_operations(
    machine: type[CommonStoreMachine], request: pytest.FixtureRequest
) -> None:
    steps = max(request.config.getoption("--machine-steps") // 2, STEPS)
    run_state_machine_as_test(machine, settings=settings(max_examples=steps // STEPS, stateful_step_count=STEPS))
