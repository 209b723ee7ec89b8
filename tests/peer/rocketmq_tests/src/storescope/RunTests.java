package storescope;

import java.io.PrintStream;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.AssumptionViolatedException;
import org.junit.runner.Description;
import org.junit.runner.JUnitCore;
import org.junit.runner.Request;
import org.junit.runner.manipulation.Filter;
import org.junit.runner.notification.Failure;
import org.junit.runner.notification.RunListener;

/** {@code RunTests CLASS[#METHOD]...}: prints a line a test, {@code result TAB class#method TAB milliseconds TAB reason}. Classes are below org.apache.rocketmq.test. */
public final class RunTests extends RunListener {
    private static final PrintStream LINES = System.out;
    private static final long LIMIT_MS = 1_000 * Long.getLong("limit", 120);
    private final String className;
    private final AtomicReference<Description> running = new AtomicReference<>();
    private volatile long startMs;
    private Throwable reason;

    private RunTests(String className) {
        this.className = className;
    }

    public static void main(String[] tests) throws Exception {
        System.setOut(System.err); // RocketMQ's tests print, too
        for (String test : tests) {
            String[] parts = test.split("#");
            RunTests listener = new RunTests(parts[0]);
            Thread thread = new Thread(() -> listener.run(parts.length == 1 ? null : parts[1]));
            thread.setDaemon(true);
            thread.start();
            while (thread.isAlive() && !listener.isStuck(thread)) {
                thread.join(200);
            }
        }
        Runtime.getRuntime().halt(0); // clients of the tests leave threads
    }

    private void run(String method) {
        try {
            Request request = Request.aClass(Class.forName("org.apache.rocketmq.test." + className));
            JUnitCore core = new JUnitCore();
            core.addListener(this);
            core.run(method == null ? request : request.filterWith(new OneMethod(method)));
        } catch (Throwable e) {
            line("failed", "*", 0, e);
        }
    }

    /** Interrupts a test behind the limit; a test that goes on all the same is left behind with its class. */
    private boolean isStuck(Thread thread) {
        Description test = running.get();
        long late = test == null ? -1 : System.currentTimeMillis() - startMs - LIMIT_MS;
        if (late > 0) {
            thread.interrupt();
        }
        if (late <= 10_000 || !running.compareAndSet(test, null)) {
            return false;
        }
        line("failed", test.getMethodName(), LIMIT_MS, new IllegalStateException("does not end"));
        return true;
    }

    private void line(String result, String method, long ms, Throwable why) {
        String text = why == null ? "" : (why.getClass().getSimpleName() + ": " + why.getMessage()).replaceAll("\\s+", " ");
        LINES.println(String.join("\t", result, className + "#" + method, String.valueOf(ms), text.substring(0, Math.min(text.length(), 300))));
        LINES.flush();
        if (why != null) {
            why.printStackTrace();
        }
    }

    @Override public void testStarted(Description test) {
        reason = null;
        startMs = System.currentTimeMillis();
        running.set(test);
    }

    @Override public void testFailure(Failure failure) {
        if (running.get() == null) {
            line("failed", String.valueOf(failure.getDescription().getMethodName()), 0, failure.getException());
        }
        reason = reason == null ? failure.getException() : reason;
    }

    @Override public void testAssumptionFailure(Failure failure) {
        reason = failure.getException();
    }

    @Override public void testFinished(Description test) {
        if (running.getAndSet(null) != null) {
            String result = reason == null ? "passed" : reason instanceof AssumptionViolatedException ? "ignored" : "failed";
            line(result, test.getMethodName(), System.currentTimeMillis() - startMs, reason);
        }
    }

    private static final class OneMethod extends Filter {
        private final String method;

        private OneMethod(String method) {
            this.method = method;
        }

        @Override public boolean shouldRun(Description item) {
            return item.isSuite() ? item.getChildren().stream().anyMatch(this::shouldRun) : method.equals(item.getMethodName());
        }

        @Override public String describe() {
            return method;
        }
    }
}
