#!/usr/bin/env bash
# Shows the branch coverage of codec, recovery, masking, and backup with undo, by the tests of these folders. It takes
# three minutes of a processor: the tracer makes generated cases several times slower.
#   bash packaging/coverage.sh [options and paths of pytest]
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

prepare test
cd "$root"
mkdir -p build
if [ $# = 0 ]; then
    set -- tests/engine/codec tests/engine/store tests/engine/rules/test_masking.py tests/engine/mapped/test_backup*.py \
        tests/engine/mapped/test_undo.py
fi
"$venv/bin/python" -m coverage run -m pytest -q -p no:xdist "$@"
"$venv/bin/python" -m coverage report
