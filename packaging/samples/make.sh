#!/usr/bin/env bash
# Makes resources/samples/*.tar.xz anew with a real RocketMQ broker; takes about four minutes. See README.md beside this file.
# Needs Java 17, Maven, and a Python with this project's engine (PYTHON names it; default python3).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/home" "$work/scratch"

mvn -q -B -f "$here/pom.xml" -Dsamples.build="$work/build" process-classes

# The time zone names the index files; the home folder takes the broker's logs; ids are those of IPv4.
broker() {
    java -Xmx1g -Duser.home="$work/home" -Duser.timezone=UTC -Djava.net.preferIPv4Stack=true -Drocketmq.home.dir="$work/scratch" \
        -cp "$work/build/classes:$work/build/lib/*" samples.Main "$1" "$2" "$work/scratch" >>"$work/broker.log" 2>&1
}

echo "an ordinary day"
broker day "$work/orders" || { tail -50 "$work/broker.log"; exit 1; }
cp -a "$work/orders" "$work/orders-damaged"
echo "a crash"
status=0
broker crash "$work/orders-damaged" || status=$?
[ "$status" = 9 ] || { tail -50 "$work/broker.log"; echo "expected a halt (9), got $status"; exit 1; }

export PYTHONPATH="$root"
"$python" "$here/damage.py" "$work/orders-damaged"
for name in orders orders-damaged; do
    "$python" "$here/pack.py" "$work/$name" "$root/resources/samples/$name.tar.xz"
done
