#!/usr/bin/env bash
# Runs the tests from a checkout; the first time it sets up what they need.
#   bash packaging/test.sh [options and paths of pytest, as seen from the project's folder]
# STORESCOPE_TEST_WORKERS: processes that share the tests, whole files at a time (default 4, as many wait for partners; 0: all in one process).
# A test that lacks a partner (Java, a display) is left out with a word; with CI set it fails instead.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

started=$SECONDS
prepare test
if [ $((SECONDS - started)) -gt 5 ]; then say "Set up in $((SECONDS - started)) s"; fi
cd "$root"
# Tests start hundreds of Pythons: where images forbid compiled modules to be kept, each of them compiles the program anew.
unset PYTHONDONTWRITEBYTECODE
"$venv/bin/python" -m compileall -q -j 2 engine viewer tests/support
exec "$venv/bin/python" -m pytest -n "${STORESCOPE_TEST_WORKERS:-4}" --dist loadfile --no-loadscope-reorder --max-worker-restart 0 "$@"
