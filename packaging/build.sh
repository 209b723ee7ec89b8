#!/usr/bin/env bash
# Builds the wheel and the source archive of the last commit into dist/ and checks them. The same commit gives the same bytes.
#   bash packaging/build.sh
# The tools have an environment of their own in build/package-env.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
environment=$root/build/package-env
# Pinned: the wheel names its builder, and another one may order or compress the files in another way.
packages="build==1.6.1 hatchling==1.33.0 twine==7.0.0 check-wheel-contents==0.6.3"

if [ "$(cat "$environment/made-with" 2>/dev/null)" != "$packages" ]; then
  "${STORESCOPE_PYTHON:-python3}" -m venv --clear "$environment"
  "$environment/bin/python" -m pip install --quiet --disable-pip-version-check $packages
  printf '%s\n' "$packages" >"$environment/made-with"
fi

# Only what is committed: files that lie about in a checkout never get into a release.
source=$(mktemp -d)
trap 'rm -rf "$source"' EXIT
git -C "$root" archive HEAD | tar -x -C "$source"
SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct)
export SOURCE_DATE_EPOCH
rm -rf "$root/dist"
"$environment/bin/python" -m build --no-isolation --outdir "$root/dist" "$source" >"$source/log" || { cat "$source/log"; exit 1; }
cd "$root"
"$environment/bin/twine" check --strict dist/*
"$environment/bin/check-wheel-contents" --config pyproject.toml dist/*.whl
(cd dist && sha256sum -- *)
