#!/usr/bin/env bash
# Runs the tests from a checkout; the first time it sets up what they need.
#   bash packaging/test.sh [options and paths of pytest, as seen from the project's folder]
# STORESCOPE_TEST_WORKERS: processes that share the tests, whole files at a time (default 3, as many wait for partners; 0: all in one process).
# A test that lacks a partner (Java, a display) is left out with a word; with CI set it fails instead.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

started=$SECONDS
prepare test
if [ $((SECONDS - started)) -gt 5 ]; then say "Set up in $((SECONDS - started)) s"; fi
cd "$root"
exec "$venv/bin/python" -m pytest -n "${STORESCOPE_TEST_WORKERS:-3}" --dist loadfile --no-loadscope-reorder --max-worker-restart 0 "$@"
