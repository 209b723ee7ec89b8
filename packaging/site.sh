#!/usr/bin/env bash
# Builds the documentation as a site: build/site/pages/index.html. Zensical, and mkdocstrings for the page of the Python
# API, have an environment of their own in build/site-env.
#   bash packaging/site.sh
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
environment=$root/build/site-env
packages="zensical==0.0.60 mkdocstrings==1.0.8 mkdocstrings-python==2.0.11"

if [ "$(cat "$environment/made-with" 2>/dev/null)" != "$packages" ]; then
  "${STORESCOPE_PYTHON:-python3}" -m venv --clear "$environment"
  "$environment/bin/python" -m pip install --quiet --disable-pip-version-check $packages
  printf '%s\n' "$packages" >"$environment/made-with"
fi
"$environment/bin/python" "$root/packaging/site_pages.py" "$root/build/site"
exec "$environment/bin/zensical" build --strict --clean --config-file "$root/build/site/mkdocs.yml"
