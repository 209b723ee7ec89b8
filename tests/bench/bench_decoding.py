"""Bodies of 200 B decoded by rules: alone, as JSON lines, in a filter and in SQL.

    python tests/bench/bench_decoding.py [--messages 200000] [--rounds 3]

What must be reached: 100,000 bodies of JSON a second. One JSON line: for each way the median of bodies a second of
process time (user and system), over a store that the bench writes and removes.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from handmade_stores import HandmadeStore

from engine.decoding.bodies import BodyDecoders, decoding_by
from engine.decoding.rules import DecodingRule
from engine.inspection import open_store
from engine.inspection.matching import listed, matching_units
from engine.query import parse
from engine.sql.store_queries import StoreQueries

RULES = (DecodingRule("Orders", "json"),)
BODY_BYTES = 200


def body(number: int) -> bytes:
    """Return an order in JSON of 200 B."""
    order = {
        "orderId": f"O-{number}",
        "customer": {"id": str(number % 1000), "name": "Ann"},
        "lines": [{"sku": "A-1", "n": number % 5, "price": 10.5}, {"sku": "B-2", "n": 1, "price": 3}],
        "paid": number % 2 == 0,
        "note": "",
    }
    order["note"] = "x" * max(BODY_BYTES - len(json.dumps(order)), 0)
    return json.dumps(order).encode()


def _formats() -> dict[str, tuple[str, Callable[[object], bytes]]]:
    import cbor2
    import msgpack

    return {
        "json": ("json", lambda value: json.dumps(value).encode()),
        "msgpack": ("msgpack", msgpack.packb),
        "cbor": ("cbor", cbor2.dumps),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    count = args.messages

    def rate(work: Callable[[], object]) -> int:
        work()  # imports, and machine code
        seconds = []
        for _ in range(args.rounds):
            begun = time.process_time()
            work()
            seconds.append(time.process_time() - begun)
        return round(count / median(seconds))

    figures: dict[str, int] = {}
    for name, (decoder, write) in _formats().items():
        stored = write(json.loads(body(7)))
        rule, decoders = DecodingRule("Orders", decoder), BodyDecoders(())
        figures[name] = rate(lambda: [decoders.decode(rule, stored) for _ in range(count)])  # noqa: B023
    with tempfile.TemporaryDirectory(prefix="storescope-bench-") as folder:
        made = HandmadeStore(log_size=1 << 26)
        for number in range(count):
            made.put("Orders", body=body(number))
        path = made.write(Path(folder) / "store")
        with open_store(path) as store:

            def lines(decoders: BodyDecoders | None) -> None:
                for item in listed(store.log, None, decoders=decoders):
                    del item

            def matches() -> None:
                with decoding_by(RULES):
                    for unit in matching_units(store.log, parse('body.customer.id = "7"')):
                        del unit

            def grouped() -> None:
                with StoreQueries(store, decoding_rules=RULES) as queries:
                    list(queries.ask("SELECT decoded->>'$.customer.id', count(*) FROM units GROUP BY 1"))

            figures["linesWithout"] = rate(lambda: lines(None))
            figures["lines"] = rate(lambda: lines(BodyDecoders(RULES)))
            figures["filter"] = rate(matches)
            figures["sql"] = rate(grouped)
    print(json.dumps({"load": os.getloadavg()[0], "messages": count, "bodiesPerSecond": figures}))


if __name__ == "__main__":
    main()
