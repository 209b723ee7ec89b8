#!/usr/bin/env bash
# Builds the documentation as a site: build/site/pages/index.html. Zensical has an environment of its own in build/site-env.
#   bash packaging/site.sh
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
environment=$root/build/site-env
zensical=0.0.60

if [ "$(cat "$environment/zensical-version" 2>/dev/null)" != "$zensical" ]; then
  "${STORESCOPE_PYTHON:-python3}" -m venv --clear "$environment"
  "$environment/bin/python" -m pip install --quiet --disable-pip-version-check "zensical==$zensical"
  printf '%s\n' "$zensical" >"$environment/zensical-version"
fi
"$environment/bin/python" "$root/packaging/site_pages.py" "$root/build/site"
exec "$environment/bin/zensical" build --strict --clean --config-file "$root/build/site/mkdocs.yml"
