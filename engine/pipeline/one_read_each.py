"""Each place in a query where a store is read gets a plan of its own.

Spark 4 keeps the plan of a Python source at the loaded frame: a query over that frame without a filter takes the plan
of the one before it, and of two filters in one query both places get the later one's, so that rows are missing. Here a
rule of the optimizer gives each place a table of its own before filters are pushed down. Spark's rules are Java, and
Spark brings a compiler for its own code; nothing of this reaches executors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.pipeline.java import CannotStart

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_INJECTED = "spark.storescope.oneReadEach"
_RULE = """
package storescope;

import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;
import org.apache.spark.sql.execution.datasources.v2.python.PythonTable;

public final class OneReadEach extends Rule {
    public TreeNode apply(TreeNode plan) {
        return plan.transform(new Relations());
    }

    public static final class Relations extends scala.runtime.AbstractPartialFunction {
        public boolean isDefinedAt(Object node) {
            return node instanceof DataSourceV2Relation
                && ((DataSourceV2Relation) node).table().getClass() == PythonTable.class;
        }

        public Object applyOrElse(Object node, scala.Function1 otherwise) {
            if (!isDefinedAt(node)) {
                return otherwise.apply(node);
            }
            DataSourceV2Relation relation = (DataSourceV2Relation) node;
            Object[] values = new Object[relation.productArity()];
            for (int i = 0; i < values.length; i++) {
                values[i] = relation.productElement(i);
            }
            values[0] = Own.of((PythonTable) relation.table());
            return relation.makeCopy(values);
        }
    }

    /** A table that shares with the one it is like all but what was planned for a query. */
    public static final class Own extends PythonTable {
        private Own(PythonDataSourceV2 source, PythonTable like) {
            super(source, like.name(), like.schema());
        }

        static Own of(PythonTable like) {
            try {
                Field held = PythonTable.class.getDeclaredField("ds");
                held.setAccessible(true);
                Object before = held.get(like);
                PythonDataSourceV2 source = new PythonDataSourceV2();
                Field[] fields = PythonDataSourceV2.class.getDeclaredFields();
                for (int i = 0; i < fields.length; i++) {
                    if (!Modifier.isStatic(fields[i].getModifiers()) && !fields[i].getName().equals("readInfo")) {
                        fields[i].setAccessible(true);
                        fields[i].set(source, fields[i].get(before));
                    }
                }
                return new Own(source, like);
            } catch (ReflectiveOperationException error) {
                throw new IllegalStateException(error);
            }
        }
    }

    public static final class Maker extends scala.runtime.AbstractFunction1 {
        public Maker() throws ReflectiveOperationException {
            PythonTable.class.getDeclaredField("ds");
            PythonDataSourceV2.class.getDeclaredField("readInfo");
        }

        public Object apply(Object session) {
            return new OneReadEach();
        }
    }
}
"""


def inject(spark: SparkSession) -> None:
    """Give ``spark`` the rule, once; raises :class:`CannotStart` where this Spark has no place for it."""
    if spark.conf.get(_INJECTED, "") == "true":
        return
    try:
        _inject(spark)
    except Exception as error:
        why = str(error).strip().partition("\n")[0] or type(error).__name__
        raise CannotStart(f"the formats need Spark 4 in this process, found {spark.version}: {why}") from error
    spark.conf.set(_INJECTED, "true")


def _inject(spark: SparkSession) -> None:
    jvm: Any = spark._jvm  # noqa: SLF001  Python has no other way to Spark's extensions
    gateway: Any = spark.sparkContext._gateway  # noqa: SLF001
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader())
    compiler.cook(_RULE)
    maker = compiler.getClassLoader().loadClass("storescope.OneReadEach$Maker")
    nothing = gateway.new_array(jvm.java.lang.Class, 0), gateway.new_array(jvm.java.lang.Object, 0)
    made = maker.getDeclaredConstructor(nothing[0]).newInstance(nothing[1])
    spark._jsparkSession.extensions().injectOptimizerRule(made)  # noqa: SLF001
