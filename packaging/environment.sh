# Sourced by run.sh and test.sh: finds or makes what they need. Everything that lands outside the project comes from apt, and only what is missing.
#   prepare run|desk|test   makes the virtual environment and system libraries ready; quick when nothing has changed
# STORESCOPE_VENV   where the virtual environment lies (default: .venv in the project)
# STORESCOPE_PYTHON the Python to make it with (default: the first of python3, python3.13 ... 3.11 that is new enough)
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=${STORESCOPE_VENV:-$root/.venv}
case $venv in /*) ;; *) venv=$PWD/$venv ;; esac

# What Debian 12 needs beside PySide6's own libraries: to draw without a display, and in addition on an X display.
qt_offscreen="libegl1 libgl1 libx11-6 libdbus-1-3 libfontconfig1 libfreetype6 libglib2.0-0 libxkbcommon0"
qt_display="libx11-xcb1 libxcb-cursor0 libxcb-icccm4 libxcb-image0 libxcb-keysyms1 libxcb-randr0 libxcb-render-util0 libxcb-render0
 libxcb-shape0 libxcb-shm0 libxcb-sync1 libxcb-util1 libxcb-xfixes0 libxcb-xkb1 libxcb1 libxkbcommon-x11-0"

say() { printf '%s\n' "$*" >&2; }
give_up() { say "storescope: $*"; exit 3; }

# Installs Debian packages when this user may; returns 1 (having said what is missing) when not.
from_apt() { # why, packages...
  local why=$1 as=()
  shift
  if ! command -v apt-get >/dev/null; then
    say "storescope: $why: please install the equivalents of these Debian packages: $*"
    return 1
  fi
  if [ "$(id -u)" != 0 ]; then
    if ! sudo -n true 2>/dev/null; then
      say "storescope: $why: please run: sudo apt-get install $*"
      return 1
    fi
    as=(sudo -n)
  fi
  say "$why: installing $*"
  if [ -z "${apt_is_fresh:-}" ]; then
    "${as[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -qq >&2 </dev/null || say "storescope: apt-get update failed; trying with the lists there are"
    apt_is_fresh=yes
  fi
  "${as[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >"$log" 2>&1 </dev/null || {
    tail -20 "$log" >&2
    say "storescope: $why: apt-get install $* failed"
    return 1
  }
}

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

find_python() {
  local name
  for name in ${STORESCOPE_PYTHON:+"$STORESCOPE_PYTHON"} python3 python3.13 python3.12 python3.11; do
    if command -v "$name" >/dev/null && new_enough "$name"; then
      command -v "$name"
      return 0
    fi
  done
  return 1
}

make_venv() {
  local python version
  if ! python=$(find_python); then
    from_apt "Python 3.11 or newer is missing" python3 python3-venv || exit 3
    python=$(find_python) || give_up "found no Python 3.11 or newer"
  fi
  # Debian splits ensurepip off; where it is missing, venv would leave a half-made environment behind.
  if ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    from_apt "Python $version cannot make virtual environments" "python$version-venv" || exit 3
  fi
  "$python" -m venv --clear "$venv" || give_up "could not make a virtual environment in $venv"
}

qt_loads() { QT_QPA_PLATFORM=offscreen "$venv/bin/python" -c 'from PySide6.QtWidgets import QApplication; QApplication([])' >"$log" 2>&1; }

# True where the X plug-in lacks a library; its own error would be an abort.
# Here and below grep reads to the end: with pipefail, a writer that meets a closed pipe would make the answer "no".
display_libraries_missing() {
  local plugins
  plugins=$("$venv/bin/python" -c 'import PySide6, pathlib; print(pathlib.Path(PySide6.__file__).parent / "Qt/plugins/platforms")')
  [ -e "$plugins/libqxcb.so" ] && command -v ldd >/dev/null && ldd "$plugins/libqxcb.so" 2>/dev/null | grep 'not found' >/dev/null
}

# The packages of the fonts that Qt does not find here.
missing_fonts() {
  QT_QPA_PLATFORM=offscreen "$venv/bin/python" -W ignore - 2>"$log" <<'PYTHON'
from PySide6.QtGui import QFontDatabase, QGuiApplication
app = QGuiApplication([])
for family, package in (("Inter", "fonts-inter"), ("JetBrains Mono", "fonts-jetbrains-mono")):
    if not QFontDatabase.hasFamily(family):
        print(package)
if not QFontDatabase.families(QFontDatabase.WritingSystem.SimplifiedChinese):
    print("fonts-wqy-microhei")
PYTHON
}

ready_qt() { # run|desk|test
  local fonts
  if ! qt_loads; then
    from_apt "Qt lacks system libraries" $qt_offscreen || give_up "Qt does not start: $(tail -1 "$log")"
    qt_loads || give_up "Qt does not start: $(tail -1 "$log")"
  fi
  # Not needed, and small: what the window is drawn for, and Chinese.
  fonts=$(missing_fonts)
  if [ -n "$fonts" ]; then from_apt "Fonts for the window" $fonts || true; fi
  if [ "$1" != run ]; then
    if display_libraries_missing; then from_apt "Qt lacks libraries for X displays" $qt_display || true; fi
  fi
}

java_is_there() {
  command -v mvn >/dev/null && command -v javac >/dev/null && javac -version 2>&1 | grep -E '^javac (1[7-9]|[2-9][0-9])' >/dev/null
}

is_java() { "$1" -version 2>&1 | grep -E 'version "(1[7-9]|[2-9][0-9])' >/dev/null; }

java_runs() { is_java java || is_java "${JAVA_HOME:-/nowhere}/bin/java"; }

# Spark runs in Java; without it everything but `storescope pipeline` works, and that says what it lacks.
ready_spark() {
  java_runs || from_apt "Spark needs Java 17 or newer" openjdk-17-jre-headless || true
}

# For tests only: what is still missing afterwards is named by the tests that want it.
ready_partners() {
  command -v Xvfb >/dev/null || from_apt "The tests draw on a virtual display" xvfb || true
  java_is_there || from_apt "The tests compare with RocketMQ itself" openjdk-17-jdk-headless maven || true
}

# One line that changes when the environment must be made again.
wanted() { # run|desk|test
  printf '%s %s %s\n' "$1" "$root" "$(cat "$root/pyproject.toml" "$root/packaging/environment.sh" | sha256sum | cut -d' ' -f1)"
}

is_ready() { # run|desk|test
  [ "$(cat "$venv/ready-$1" 2>/dev/null)" = "$(wanted "$1")" ] && "$venv/bin/python" -c '' 2>/dev/null
}

# run: draws pictures; desk: opens a window on an X display; test: both, and what the tests want.
prepare() { # run|desk|test
  local profile=$1 extras=all compile=--compile each
  is_ready "$profile" && return 0
  mkdir -p "$(dirname "$venv")"
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  say "Setting up $venv (the first time takes some minutes)"
  new_enough "$venv/bin/python" && [ "$(cat "$venv/made-for" 2>/dev/null)" = "$root" ] || make_venv
  printf '%s\n' "$root" >"$venv/made-for"
  # Tests import a third of what is installed; to compile all of it takes as long as to fetch it.
  if [ "$profile" = test ]; then extras=dev compile=--no-compile; fi
  # An old pip would install crcmod, which has no wheel, in a way it complains about; a new one does not know the setting.
  (cd "$root" && PIP_USE_PEP517=1 "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-input $compile -e ".[$extras]" </dev/null >&2) ||
    give_up "pip could not install what pyproject.toml names (its own words stand above)"
  ready_qt "$profile"
  if [ "$profile" = test ]; then ready_partners; else ready_spark; fi
  for each in run desk test; do
    wanted "$each" >"$venv/ready-$each"
    [ "$each" = "$profile" ] && break
  done
  rm -f "$log"
  trap - EXIT
}
