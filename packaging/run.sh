#!/usr/bin/env bash
# Starts the viewer from a checkout; the first time it sets up what that needs.
#   bash packaging/run.sh [STORE] [options of `storescope view`]       without STORE: the sample store
# Without a display it says so and writes a picture of the window to storescope.png instead.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

if [ -n "${DISPLAY:-}" ]; then prepare desk; else prepare run; fi
if [ $# = 0 ]; then
  set -- "$("$venv/bin/python" -c 'from engine.inspection.samples import names, sample; print(sample(names()[0]))')"
fi
picture=no
for argument in "$@"; do
  case $argument in --screenshot | --screenshot=* | --drive | --drive=* | --help | -h) picture=asked ;; esac
done
if [ -z "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ] && [ "$(uname)" = Linux ]; then
  export QT_QPA_PLATFORM=${QT_QPA_PLATFORM:-offscreen}
  if [ $picture = no ]; then
    say "No display here (DISPLAY and WAYLAND_DISPLAY are empty): writing a picture of the window to $PWD/storescope.png"
    set -- "$@" --screenshot storescope.png
  fi
fi
exec "$venv/bin/storescope" view "$@"
