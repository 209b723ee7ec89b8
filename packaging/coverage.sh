#!/usr/bin/env bash
# Shows the branch coverage of codec, recovery, masking, and backup with undo, by the tests of these folders. It takes
# three minutes of a processor: the tracer makes generated cases several times slower.
#   bash packaging/coverage.sh [options and paths of pytest]
#   bash packaging/coverage.sh --few    in one minute of a processor, as the checks show it: ten generated cases a test,
#                                       no golden stores but those of DLedger, no tests of the source text; two
#                                       processes
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

# Tests that take long and reach no branch that others do not: of the source text, of programs that are started, of size.
long="nobody_else or every_place or pass_their_tests or loads_no_numba or golden_logs or ten_thousand or twins_are_loaded"
long="$long or (power_loss and 4.9) or begun_again"
others="tests/engine/rules/test_masking.py tests/engine/mapped/test_backup.py tests/engine/mapped/test_undo.py"

prepare test
cd "$root"
mkdir -p build
if [ "${1:-}" = --few ]; then
    temporary=$(mktemp -d "$([ -w /dev/shm ] && echo /dev/shm || echo "${TMPDIR:-/tmp}")/storescope-coverage-XXXXXX")
    trap 'rm -rf "$temporary"' EXIT
    measure() { # name, paths...
        local name=$1
        shift
        mkdir "$temporary/$name"
        PYTEST_DEBUG_TEMPROOT=$temporary/$name "$venv/bin/python" -m coverage run --data-file="$temporary/$name.coverage" \
            -m pytest -q -p no:xdist --no-summary --hypothesis-profile few -k "not ($long)" "$@" \
            >"$temporary/$name.log" 2>&1 || tail -n 20 "$temporary/$name.log"
    }
    measure codec -m "not golden" tests/engine/codec &
    measure others -m "not golden" tests/engine/store/recovery $others
    measure dledger tests/engine/store/recovery/test_dledger.py
    wait
    "$venv/bin/python" -m coverage combine --quiet "$temporary"/*.coverage
else
    if [ $# = 0 ]; then
        set -- tests/engine/codec tests/engine/store $others
    fi
    "$venv/bin/python" -m coverage run -m pytest -q -p no:xdist "$@"
fi
"$venv/bin/python" -m coverage report
