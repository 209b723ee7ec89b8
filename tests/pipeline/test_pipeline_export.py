"""A masked export reveals nothing of the masked values: in no file, file name, manifest or output."""

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from engine.cli.main import main
from engine.codec.encode import Message
from engine.config import from_mapping
from engine.message_store import MessageStore
from engine.pipeline import session

pytestmark = pytest.mark.spark

KEYS = [f"SO-{number:06d}" for number in range(40)]
GROUPS = ["billing-group", "audit-group"]
LIGHT = ["user-77", "user-78"]
HOSTS = ["10.11.12.13", "host-a.example"]
BODIES = [f"body of {key}" for key in KEYS]
VALUES = ["blue-velvet", "secret-colour"]
SECRETS = [*KEYS, *GROUPS, *LIGHT, *HOSTS, *VALUES, "body of"]


@pytest.fixture
def store(tmp_path):
    """Messages with keys, groups in properties and in retry topics, light queues, hosts and user properties."""
    config, _ = from_mapping({"mappedFileSizeCommitLog": 1 << 16, "enableLmq": "true", "enableMultiDispatch": "true"})
    with MessageStore(tmp_path / "s", config) as message_store:
        for number, key in enumerate(KEYS):
            group, light = GROUPS[number % 2], LIGHT[number % 2]
            topic = (f"%RETRY%{group}", "Orders", f"%DLQ%{group}", f"%RETRY%{group}+Orders")[number % 4]
            properties = {
                "KEYS": f"{key} also-{key}",
                "PGROUP": group,
                "CLIENT_HOST": HOSTS[1],
                "colour": VALUES[number % 2],
                "orderId": key,
                "note": f"see {key} of {group} at {HOSTS[0]}:10911, %LMQ%{light}",
                "weight": "7 kg",
            }
            if topic == "Orders":
                properties["INNER_MULTI_DISPATCH"] = f"%LMQ%{light},%LMQ%{light}-b"
            message_store.put_message(
                Message(topic, f"body of {key}".encode(), properties=properties, born_host=f"{HOSTS[0]}:4711")
            )
    return tmp_path / "s"


def all_words(folder):
    """Return everything that an export contains: names, bytes, and the values of Parquet, which are packed."""
    reports = []
    for path in sorted(folder.rglob("*")):
        reports.append(str(path.relative_to(folder)))
        if path.suffix == ".parquet":
            table = pq.ParquetFile(path)
            reports.append(str(table.read().to_pylist()) + str(table.metadata.metadata))
        if path.is_file():
            reports.append(path.read_bytes().decode("utf-8", "replace"))
    return "\n".join(reports)


@pytest.mark.parametrize("kind", ["parquet", "csv", "json"])
def test_no_masked_value_appears_anywhere(spark, store, tmp_path, capsys, kind):
    """The manifest contained the filter with the searched key; no word masked properties, groups and light queues."""
    out, log = tmp_path / "out", Path(session._Current.running.log.name)
    code = main(
        [
            "pipeline",
            "export",
            str(store),
            "--out",
            str(out),
            "--format",
            kind,
            "--master",
            "local[2]",
            "--json",
            "--mask",
            "bodies,keys,hosts,groups,lmq,properties",
            "--keep-properties",
            "weight,note",
            "--where",
            "(keys contains \"SO-0000\" or size > 77) and properties.colour != 'secret-colour-2'",
        ]
    )
    output = capsys.readouterr()
    assert (code, output.err) == (0, "")
    words = all_words(out)
    assert [secret for secret in SECRETS if secret in words] == []
    assert [secret for secret in SECRETS if secret in output.out or secret in log.read_text()] == []
    about = json.loads((out / "_storescope.json").read_text())
    assert about["where"] == "(keys contains … or size > …) and properties.colour != …"
    assert about["masked"] == ["bodies", "keys", "hosts", "groups", "lmq", "properties"]
    assert "7 kg" in words
    assert words.count("%LMQ%lmq-") > 10


def test_equal_values_are_equal_after_masking(spark, store, tmp_path, capsys):
    """Keys join with properties, retry topics with groups, light queues with each other."""
    out = tmp_path / "out"
    parts = ["--mask", "keys,groups,lmq,hosts", "--master", "local[2]", "--format", "json"]
    assert main(["pipeline", "export", str(store), "--out", str(out), *parts]) == 0
    capsys.readouterr()
    rows = [json.loads(line) for path in out.glob("part-*") for line in Path(path).read_text().splitlines()]
    assert len(rows) == len(KEYS)
    lights = set()
    for row in rows:
        properties = row["properties"]
        assert properties["KEYS"] == " ".join(row["keys"])
        assert properties["orderId"] == row["keys"][0]
        assert properties["note"].split()[1] == row["keys"][0]
        assert properties["note"].split()[3] == properties["PGROUP"]
        assert properties["colour"] in VALUES
        assert row["topic"] == "Orders" or properties["PGROUP"] in row["topic"]
        lights.update(properties.get("INNER_MULTI_DISPATCH", "").split(",")[:1])
    assert len({row["properties"]["PGROUP"] for row in rows}) == 2
    assert len({row["keys"][0] for row in rows}) == len(KEYS)
    assert {row["properties"]["note"].split()[-1] for row in rows} >= lights - {""}


def test_an_unreadable_topics_table_is_reported_and_is_in_the_manifest(store, tmp_path, capsys):
    """The export of such a store was silent, and its manifest had neither file sizes nor release: an import made plain
    queues of batch topics.
    """
    broken = tmp_path / "broken"
    shutil.copytree(store, broken)
    outs = []
    for folder in (store, broken):
        if folder is broken:
            (broken / "config").mkdir(exist_ok=True)
            for name in ("topics.json", "topics.json.bak"):
                (broken / "config" / name).write_text("{no table")
        out = tmp_path / f"{folder.name}-out"
        assert main(["pipeline", "export", str(folder), "--out", str(out), "--format", "json"]) == 0
        outs.append((json.loads((out / "_storescope.json").read_text())["stores"][0], capsys.readouterr().err))
    (record, nothing), (facts, words) = outs
    assert "topicsTable" not in record
    assert "topics.json cannot be read" not in nothing
    assert facts["topicsTable"]
    assert (facts["config"], facts["release"]) == (record["config"], record["release"])
    assert f"{broken}: config/topics.json cannot be read" in words
