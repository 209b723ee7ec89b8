#!/usr/bin/env bash
# Prepares a release of the last commit: checks version and changelog, builds everything twice and compares it, audits the
# packages, and writes the parts list and the hashes. All of it lies in build/release/ afterwards.
#   bash packaging/release.sh         a dry run: everything but the tag
#   bash packaging/release.sh --tag   also makes the signed tag, if nothing is missing
# Debian 12 with Python 3.11, as archive.py needs it. Signing and uploading are steps of RELEASING.md.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
python=${STORESCOPE_PYTHON:-python3}
packages="cyclonedx-bom==7.5.0 pip-audit==2.10.1"
tools=$root/build/release-env
release=$root/build/release
missing=0
lacks() { printf 'release.sh: %s\n' "$*" >&2; missing=$((missing + 1)); }

case ${1:-} in '' | --tag) ;; *) echo "usage: bash packaging/release.sh [--tag]" >&2; exit 2 ;; esac
version=$(sed -n 's/^__version__ = "\(.*\)"/\1/p' engine/__init__.py)
[ -z "$(git status --porcelain --untracked-files=no)" ] || lacks "the checkout has changes that are not committed"
notes=$(awk -v head="## [$version] - " 'index($0, "## [") == 1 { inside = index($0, head) == 1 } inside' CHANGELOG.md)
[ -n "$notes" ] || lacks "CHANGELOG.md: expected a section '## [$version] - DATE', found none"
[ -z "$(git tag --list "v$version")" ] || lacks "there is a tag v$version already: set the next version in engine/__init__.py"
"$python" packaging/maintainer.py >/dev/null || lacks "pyproject.toml: authors names no mail address: the package for Debian would name none"

rm -rf "$release"
mkdir -p "$release"
printf '%s\n' "$notes" >"$release/notes.md"

if [ "$(cat "$tools/made-with" 2>/dev/null)" != "$packages" ]; then
  "$python" -m venv --clear "$tools"
  "$tools/bin/pip" install --quiet --disable-pip-version-check $packages
  printf '%s\n' "$packages" >"$tools/made-with"
fi
# --strict: a package that the advisories do not know is not a package without advisories.
"$tools/bin/pip-audit" --strict --disable-pip --require-hashes --progress-spinner off -r packaging/archive/packages.lock ||
  lacks "pip-audit: the packages were not all audited, or have known weaknesses (its words stand above)"

# A clone each: what lies about in this checkout, and what the other build left, takes no part.
build() {
  local clone=$release/build-$1
  git clone --quiet --no-hardlinks "$root" "$clone"
  (
    cd "$clone"
    "$python" packaging/archive.py small
    mv dist ../dist-small
    "$python" packaging/archive.py full
    bash packaging/deb.sh
    mv ../dist-small/*-small.tar.xz dist/
    rm -r ../dist-small
  )
  mv "$clone/dist" "$release/$1"
  cp "$clone/build/archive/storescope-$version-linux-x86_64/MANIFEST.txt" "$release/MANIFEST.txt"
  rm -rf "$clone"
}
build first
build second
for file in "$release"/first/*; do
  cmp "$file" "$release/second/$(basename "$file")" || lacks "$(basename "$file"): two builds of one commit differ"
done
mv "$release/first" "$release/dist"
rm -rf "$release/second"

"$tools/bin/cyclonedx-py" requirements --output-reproducible --pyproject pyproject.toml \
  -o "$release/dist/storescope-$version.cdx.json" packaging/archive/packages.lock
"$python" packaging/parts_list.py "$release/dist/storescope-$version.cdx.json" "$release/MANIFEST.txt" "$version"
(cd "$release/dist" && sha256sum -- * | tee ../SHA256SUMS)

if [ "$missing" -gt 0 ]; then
  echo "release.sh: $missing of the steps above failed; no tag was made" >&2
  exit 1
fi
if [ "${1:-}" = --tag ]; then
  git tag --sign --message "Storescope $version" "v$version"
else
  echo "dry run: everything is in ${release#"$root"/}/; --tag makes the signed tag v$version"
fi
