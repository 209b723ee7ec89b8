#!/usr/bin/env bash
# Tries what archive.py wrote on bare systems: no Python, no library of the window. Needs root and debootstrap.
#   bash packaging/try_archive.sh FILE.tar.xz|TREE|FILE.deb [SUITE ...]        suites of Debian; default: bookworm trixie
# Each system is made in a folder of its own and removed afterwards; pictures go to build/tried/.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
subject=$(realpath "$1")
shift
[ $# -gt 0 ] || set -- bookworm trixie
mkdir -p "$root/build/tried"
work=$(mktemp -d "$root/build/bare-XXXXXX")

leave() {
  for mount in "$work"/*/proc "$work"/*/dev; do mountpoint -q "$mount" && umount "$mount"; done
  # A mount that is still there would be emptied, and /dev is the machine's own.
  if ! grep -q " $work/" /proc/mounts; then rm -rf "$work"; fi
}
trap leave EXIT

inside() { env -i PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin HOME=/tmp/home LANG=C.UTF-8 chroot "$bare" "$@"; }

expect() { # exit code, command...
  local wanted=$1 code=0 begun=$EPOCHREALTIME
  shift
  inside "$@" >"$work/out" 2>&1 || code=$?
  printf '%s: %s: exit %s, %s s\n' "$suite" "${*#/opt/*/}" "$code" "$(awk "BEGIN { printf \"%.1f\", $EPOCHREALTIME - $begun }")"
  if [ "$code" != "$wanted" ]; then cat "$work/out"; exit 1; fi
}

for suite in "$@"; do
  bare=$work/$suite
  if [ -d "${STORESCOPE_ROOTS:-/nowhere}/$suite" ]; then
    cp -a "$STORESCOPE_ROOTS/$suite" "$bare"  # made before, by the same line
  else
    debootstrap --variant=minbase --include=ca-certificates "$suite" "$bare" >"$work/log" 2>&1 || { tail -5 "$work/log"; exit 1; }
  fi
  mount --bind /dev "$bare/dev"
  mount -t proc proc "$bare/proc"
  cp /etc/resolv.conf /etc/hosts "$bare/etc/"
  cp /etc/apt/apt.conf.d/* "$bare/etc/apt/apt.conf.d/"
  cp /usr/local/share/ca-certificates/* "$bare/usr/local/share/ca-certificates/" 2>/dev/null || true
  inside update-ca-certificates >/dev/null 2>&1 || true
  mkdir -p "$bare/tmp/home" "$bare/opt"
  if inside sh -c 'command -v python3' >/dev/null; then echo "$suite has a Python: nothing would be shown" >&2; exit 1; fi
  program=/usr/bin/storescope
  case $subject in
    *.deb)
      cp "$subject" "$bare/tmp/storescope.deb"
      inside apt-get update -qq
      expect 0 env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends /tmp/storescope.deb desktop-file-utils shared-mime-info man-db bash-completion
      ;;
    *.tar.xz) tar -xJf "$subject" -C "$bare/opt" ;;
    *) cp -a "$subject" "$bare/opt/" ;;
  esac
  for unpacked in "$bare"/opt/storescope-*; do [ -d "$unpacked" ] && program=/opt/$(basename "$unpacked")/storescope; done
  tar -xJf "$root/resources/samples/orders-damaged.tar.xz" -C "$bare/tmp"
  store=/tmp/orders-damaged
  expect 0 "$program" --version
  expect 0 "$program" doctor
  expect 0 "$program" info "$store"
  if inside test -d "$(dirname "$(inside readlink -f "$program")")/python/lib/python3/dist-packages/PySide6"; then
    expect 0 "$program" sql "$store" 'SELECT topic, count(*) FROM units GROUP BY 1'
    inside apt-get update -qq
    expect 0 env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends xvfb xauth fonts-dejavu-core
    expect 0 env QT_QPA_PLATFORM=offscreen "$program" view "$store" --screenshot /tmp/offscreen.png
    expect 0 xvfb-run -a "$program" view "$store" --at findings --screenshot /tmp/display.png
    for picture in offscreen display; do cp "$bare/tmp/$picture.png" "$root/build/tried/$suite-$picture.png"; done
  fi
  expect 1 "$program" check "$store"
  expect 1 "$program" check "$store"  # the machine code is there now
  [ -n "$(inside find /tmp/home -name '*.nbi')" ] || { echo "no machine code in the user's cache" >&2; exit 1; }
  expect 0 "$program" repair "$store" --plan
  case $subject in
    *.deb)
      expect 0 desktop-file-validate /usr/share/applications/storescope.desktop
      line=$(inside sed -n 's/^Exec=//p' /usr/share/applications/storescope.desktop)
      expect 0 xvfb-run -a ${line/\%f/$store} --screenshot /tmp/desktop.png
      expect 0 man -w storescope
      expect 0 bash -c '. /usr/share/bash-completion/bash_completion; . /usr/share/bash-completion/completions/storescope; COMP_WORDS=(storescope chec); COMP_CWORD=1; _storescope; test "${COMPREPLY[0]}" = check'
      expect 0 grep -q '^application/x-storescope-session:\*.storescope' /usr/share/mime/globs
      expect 0 env DEBIAN_FRONTEND=noninteractive apt-get remove -y -qq storescope
      expect 1 test -e /usr/lib/storescope
      ;;
  esac
  umount "$bare/proc" "$bare/dev"
  rm -rf "$bare"
done
echo "passed on: $*"
