#!/usr/bin/env bash
# Builds dist/storescope_VERSION_amd64.deb of the last commit: the archive with the window in /usr/lib/storescope, its
# entry in the menu, its file types, the manual page and the completion of bash.
#   bash packaging/deb.sh
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
version=$(sed -n 's/^__version__ = "\(.*\)"/\1/p' "$root/engine/__init__.py")
tree=$root/build/archive/storescope-$version-linux-x86_64
commit=$(git -C "$root" rev-parse HEAD)
if ! grep -qx "commit $commit" "$tree/MANIFEST.txt" 2>/dev/null; then
  "${STORESCOPE_PYTHON:-python3}" "$root/packaging/archive.py" full --tree-only
fi
SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct)
export SOURCE_DATE_EPOCH

maintainer=$("${STORESCOPE_PYTHON:-python3}" "$root/packaging/maintainer.py") || true

package=$root/build/archive/deb
rm -rf "$package"
mkdir -p "$package/DEBIAN" "$package/usr/bin" "$package/usr/lib" "$package/usr/share/doc/storescope"
cp -al "$tree" "$package/usr/lib/storescope"
rm -r "$package/usr/lib/storescope/share"
cp -r "$tree/share/." "$package/usr/share/"
gzip -9n "$package/usr/share/man/man1/storescope.1"
cp "$tree/LICENCES.txt" "$package/usr/share/doc/storescope/copyright"
git -C "$root" show HEAD:CHANGELOG.md | gzip -9n >"$package/usr/share/doc/storescope/changelog.gz"
ln -s ../lib/storescope/storescope "$package/usr/bin/storescope"
find "$package/usr/share" "$package/DEBIAN" -type d -exec chmod 755 {} + -o -type f -exec chmod 644 {} +
floor=$(sed -n 's/^needs glibc \([0-9.]*\).*/\1/p' "$tree/MANIFEST.txt")
cat >"$package/DEBIAN/control" <<CONTROL
Package: storescope
Version: $version
Architecture: amd64
Maintainer: $maintainer
Section: database
Priority: optional
Installed-Size: $(find "$package/usr" -type f -printf "%s\n" | awk "{ bytes += \$1 } END { print int(bytes / 1024) }")
Depends: libc6 (>= $floor), libstdc++6, libgcc-s1, fontconfig-config
Recommends: fonts-inter, fonts-jetbrains-mono, fonts-wqy-microhei
Suggests: openssh-client
Description: inspect and repair Apache RocketMQ message stores
 A window and a command line that show what a message store contains, what is
 damaged, what a broker would lose, and repair it with a plan first.
 .
 It brings its own Python and Qt.
CONTROL
find "$package" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
mkdir -p "$root/dist"
dpkg-deb --root-owner-group -Zxz -z"${STORESCOPE_XZ:-9}" --build "$package" "$root/dist/storescope_${version}_amd64.deb"
(cd "$root/dist" && sha256sum "storescope_${version}_amd64.deb")
