#!/usr/bin/env bash
# Runs the tests from a checkout; the first time it sets up what they need.
#   bash packaging/test.sh [options and paths of pytest, as seen from the project's folder]
# STORESCOPE_TEST_WORKERS: processes that share the tests, whole files at a time (default 5, as many wait for partners; 0: all in one process).
# STORESCOPE_TEST_FOLDER: where the tests write (default: memory where there is plenty, else the system's temporary folder).
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
# pytest compiles the tests in its own way. The processes that share them would each do that for all tests at the same time.
all=yes
for argument; do if [ -e "${argument%%::*}" ]; then all=no; fi; done
if [ $all = yes ] && [ ! -e tests/project/__pycache__ ]; then
  for half in tests/engine "tests --ignore=tests/engine"; do
    STORESCOPE_COVERAGE='' QT_QPA_PLATFORM=offscreen "$venv/bin/python" -m pytest --collect-only -q -p no:xdist $half >/dev/null 2>&1 &
  done
  wait
fi

# Tests write some 20 GB and flush all the time. Where there is memory to spare they write there, and it is emptied at the end.
memory_to_spare() { # KiB that are available, KiB that are free in the folder
  local available free
  available=$(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo 2>/dev/null) || return 1
  free=$(df -Pk "$1" 2>/dev/null | awk 'NR == 2 { print $4 }') || return 1
  [ -w "$1" ] && [ "${available:-0}" -ge $((12 << 20)) ] && [ "${free:-0}" -ge $((8 << 20)) ]
}
if [ -n "${STORESCOPE_TEST_FOLDER:-}" ]; then
  mkdir -p "$STORESCOPE_TEST_FOLDER"
  export PYTEST_DEBUG_TEMPROOT=$STORESCOPE_TEST_FOLDER
elif [ -z "${PYTEST_DEBUG_TEMPROOT:-}" ] && memory_to_spare /dev/shm; then
  PYTEST_DEBUG_TEMPROOT=$(mktemp -d /dev/shm/storescope-XXXXXX)
  export PYTEST_DEBUG_TEMPROOT
  trap 'rm -rf "$PYTEST_DEBUG_TEMPROOT"' EXIT
fi
"$venv/bin/python" -m pytest -n "${STORESCOPE_TEST_WORKERS:-5}" --dist loadfile --no-loadscope-reorder --max-worker-restart 0 "$@"
