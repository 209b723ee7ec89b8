"""The job on Spark: the same bytes, several stores at once, and the form of a difference."""

import shutil

import pytest
from dispatching import stored
from rebuilt_stores import dispatched, rebuilt

from engine.cli.pipeline_rebuild import facts_of
from engine.pipeline.files import find_stores
from engine.pipeline.progress import Watch
from engine.pipeline.rebuild import SparkTasks, rebuild
from engine.pipeline.rebuild_compare import SCHEMA, compare, compare_tasks
from engine.pipeline.splits import plan

pytestmark = pytest.mark.spark


def test_a_fleet_is_built_and_compared_by_tasks(golden, tmp_path, spark):
    names = ("clean-5.3.3", "lmq-5.3.3")
    for name in names:
        shutil.copytree(golden(name), tmp_path / "fleet" / name / "store")
    lost = tmp_path / "fleet" / "clean-5.3.3" / "store" / "consumequeue" / "TopicA" / "0"
    shutil.rmtree(lost)
    places = find_stores(str(tmp_path / "fleet" / "*" / "store"))
    facts = list(facts_of(places, None, tmp_path / "new"))
    on = SparkTasks(spark)
    calls = []
    with Watch(spark, "rebuild", calls.append) as watch:
        done = rebuild(on, facts, plan(places, 1_000_000).splits, tmp_path / "new", watch)
        assert watch.units == sum(item.units for item in done)
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == sorted(names)
    for name in names:
        dispatched(golden(name), tmp_path / "engine" / name)
        assert stored(tmp_path / "new" / name) == stored(tmp_path / "engine" / name)
    tasks = [[task] for fact in facts for task in compare_tasks(fact, tmp_path / "new" / fact.label, on.cores)]
    differ = [row for row in on(tasks, compare, SCHEMA) if row["missing"] or row["extra"] or row["different"]]
    assert [(row["topic"], row["queueId"], row["entries"], row["extra"]) for row in differ] == [("TopicA", 0, 0, 0)]
    assert differ[0]["missing"] > 100
    assert sorted(path.name for path in tmp_path.iterdir()) == ["engine", "fleet", "new"]


def test_a_task_that_fails_leaves_nothing(golden, tmp_path, spark):
    store = tmp_path / "store"
    shutil.copytree(golden("lmq-5.3.3"), store)
    (tmp_path / "there").mkdir()
    places = find_stores(str(store))
    facts = list(facts_of(places, None, tmp_path / "new"))
    splits = plan(places).splits
    (tmp_path / ".new.rebuild").write_text("in the way")
    with pytest.raises(OSError, match="exists"):
        rebuild(SparkTasks(spark), facts, splits, tmp_path / "new")
    assert not (tmp_path / "new").exists()
    (tmp_path / ".new.rebuild").unlink()
    assert rebuilt(store, tmp_path / "new", run=SparkTasks(spark)).units == 120
