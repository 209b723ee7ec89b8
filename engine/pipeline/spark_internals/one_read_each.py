"""Give each place in a query that reads a store its own plan, for the columns that it needs.

Spark keeps the plan of a Python source with the loaded frame. A query over that frame without a filter reuses the plan
of the previous query, and with two filters in one query both places get the later one's plan, so rows are missing. Here
a rule of the optimizer gives each place its own table before filters are pushed down. Spark also passes no columns to a
Python source. So the table of each place tells Spark's own rules that it accepts columns, as Parquet does, and calls
Python to plan when conditions and columns are both known. Spark's rules are Java; Spark brings a compiler for its own
code. Nothing of this reaches executors. If a Spark does not support the rule, all columns are read and no filter is
pushed down: correct, only slower. For a table that was made by SQL, Spark forgets the path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.errors import StoreError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_INJECTED = "spark.storescope.oneReadEach"
_RULE = """
package storescope;

import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat;
import org.apache.spark.sql.catalyst.catalog.CatalogUtils;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownFilters;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;
import org.apache.spark.sql.execution.datasources.v2.python.PythonInputPartition;
import org.apache.spark.sql.execution.datasources.v2.python.PythonScanBuilder;
import org.apache.spark.sql.execution.datasources.v2.python.PythonTable;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

public final class OneReadEach extends Rule {
    private final SparkSession session;

    OneReadEach(SparkSession session) {
        this.session = session;
    }

    public TreeNode apply(TreeNode plan) {
        return plan.transform(new Relations(session));
    }

    public static final class Relations extends scala.runtime.AbstractPartialFunction {
        private final SparkSession session;

        Relations(SparkSession session) {
            this.session = session;
        }

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
            for (int i = 0; i < values.length; i++) {
                if (values[i] == relation.options() && relation.name().startsWith("spark_catalog.")) {
                    values[i] = ofTable((Identifier) relation.identifier().get(), relation.options());
                }
            }
            return relation.makeCopy(values);
        }

        /** Spark forgets the place and the options of a table that SQL made when it reads it. */
        private CaseInsensitiveStringMap ofTable(Identifier named, CaseInsensitiveStringMap given) {
            TableIdentifier identifier = new TableIdentifier(named.name(), scala.Option.apply(named.namespace()[0]));
            CatalogStorageFormat storage;
            try {
                storage = session.sessionState().catalog().getTableMetadata(identifier).storage();
            } catch (Exception error) {
                return given;
            }
            HashMap options = new HashMap();
            scala.collection.Iterator pairs = storage.properties().iterator();
            while (pairs.hasNext()) {
                scala.Tuple2 pair = (scala.Tuple2) pairs.next();
                options.put(((String) pair._1()).toLowerCase(), pair._2());
            }
            if (storage.locationUri().isDefined()) {
                options.put("path", CatalogUtils.URIToString((URI) storage.locationUri().get()));
            }
            options.putAll(given);
            return new CaseInsensitiveStringMap(options);
        }
    }

    /** A table that shares with the one it is like all but what was planned for a query. */
    public static final class Own extends PythonTable {
        private final PythonDataSourceV2 source;

        private Own(PythonDataSourceV2 source, PythonTable like) {
            super(source, like.name(), like.schema());
            this.source = source;
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

        /** Other people's sources need not know what a part of their columns is. */
        public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
            ScanBuilder whole = super.newScanBuilder(options);
            return name().startsWith("rocketmq-") ? new Builder(source, name(), schema(), options) : whole;
        }
    }

    /** Waits until the columns that a query needs are known, and only then has Python plan. */
    public static final class Builder implements SupportsPushDownFilters, SupportsPushDownRequiredColumns {
        private final PythonDataSourceV2 source;
        private final String name;
        private final CaseInsensitiveStringMap options;
        private final List conditions = new ArrayList();
        private StructType read;

        Builder(PythonDataSourceV2 source, String name, StructType all, CaseInsensitiveStringMap options) {
            this.source = source;
            this.name = name;
            this.read = all;
            this.options = options;
        }

        public Filter[] pushFilters(Filter[] filters) {
            conditions.addAll(Arrays.asList(filters));
            return filters;
        }

        public Filter[] pushedFilters() {
            return new Filter[0];
        }

        /**
         * Whole columns, in their own order; without any the cheapest, for rows are counted by one. A schema without
         * comments is not the format's own but a user's: Python is asked for all of it, and refuses what cannot be.
         */
        public void pruneColumns(StructType needed) {
            for (int i = 0; i < read.length(); i++) {
                if (read.fields()[i].getComment().isEmpty()) {
                    return;
                }
            }
            HashSet names = new HashSet(Arrays.asList(needed.fieldNames()));
            List kept = new ArrayList();
            StructField cheapest = null;
            for (int i = 0; i < read.length(); i++) {
                StructField field = read.fields()[i];
                if (names.contains(field.name())) {
                    kept.add(field);
                }
                if (cheapest == null && field.dataType() instanceof IntegerType) {
                    cheapest = field;
                }
            }
            if (kept.isEmpty()) {
                kept.add(cheapest == null ? read.fields()[0] : cheapest);
            }
            read = new StructType((StructField[]) kept.toArray(new StructField[0]));
        }

        public Scan build() {
            ScanBuilder inner = new PythonScanBuilder(source, name, read, options);
            if (!conditions.isEmpty() && inner instanceof SupportsPushDownFilters) {
                ((SupportsPushDownFilters) inner).pushFilters((Filter[]) conditions.toArray(new Filter[0]));
            }
            return new Told(inner.build());
        }
    }

    /** A scan whose description tells what Python planned. */
    public static final class Told implements Scan {
        private final Scan inner;
        private Batch batch;

        Told(Scan inner) {
            this.inner = inner;
        }

        public StructType readSchema() {
            return inner.readSchema();
        }

        public synchronized Batch toBatch() {
            if (batch == null) {
                batch = inner.toBatch();
            }
            return batch;
        }

        public CustomMetric[] supportedCustomMetrics() {
            return inner.supportedCustomMetrics();
        }

        public String description() {
            String told = "columns: [" + String.join(", ", readSchema().fieldNames()) + "]";
            try {
                InputPartition[] parts = toBatch().planInputPartitions();
                if (parts.length > 0) {
                    byte[] pickled = ((PythonInputPartition) parts[0]).pickedPartition();
                    String text = new String(pickled, StandardCharsets.UTF_8);
                    int start = text.indexOf("<told>");
                    int stop = text.indexOf("</told>");
                    if (0 <= start && start < stop) {
                        told = text.substring(start + "<told>".length(), stop);
                    }
                }
            } catch (RuntimeException error) {
                // whoever runs the plan hears of it
            }
            return inner.description() + " " + told;
        }
    }

    public static final class Maker extends scala.runtime.AbstractFunction1 {
        public Maker() throws ReflectiveOperationException {
            PythonTable.class.getDeclaredField("ds");
            PythonDataSourceV2.class.getDeclaredField("dataSourceInPython");
        }

        public Object apply(Object session) {
            return new OneReadEach((SparkSession) session);
        }
    }
}
"""


class NoPlace(StoreError):
    """This Spark has no place for the rule; the message says why."""


def inject(spark: SparkSession) -> None:
    """Add the rule to ``spark``, once. Raises :class:`NoPlace` if this Spark has no place for it."""
    if spark.conf.get(_INJECTED, "") == "true":
        return
    try:
        _inject(spark)
    except Exception as error:
        java = getattr(error, "java_exception", None)
        why = str(error if java is None else java).strip().partition("\n")[0] or type(error).__name__
        raise NoPlace(why) from error
    spark.conf.set(_INJECTED, "true")


def _inject(spark: SparkSession) -> None:
    jvm: Any = spark._jvm  # noqa: SLF001  Python has no other way to Spark's extensions
    gateway: Any = spark.sparkContext._gateway  # noqa: SLF001
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader())
    compiler.cook(_RULE)
    maker = compiler.getClassLoader().loadClass("storescope.OneReadEach$Maker")
    no_arguments = gateway.new_array(jvm.java.lang.Class, 0), gateway.new_array(jvm.java.lang.Object, 0)
    rule = maker.getDeclaredConstructor(no_arguments[0]).newInstance(no_arguments[1])
    spark._jsparkSession.extensions().injectOptimizerRule(rule)  # noqa: SLF001
