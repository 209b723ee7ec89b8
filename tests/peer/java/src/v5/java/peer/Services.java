package peer;

import com.google.gson.JsonObject;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.config.MessageStoreConfig;
import org.apache.rocketmq.store.stats.BrokerStatsManager;
import org.apache.rocketmq.store.timer.TimerCheckpoint;
import org.apache.rocketmq.store.timer.TimerMessageStore;
import org.apache.rocketmq.store.timer.TimerMetrics;

/** The services of a broker that the plan asks for ({@code services}): here the timers, set up as a broker does. */
final class Services {
    private TimerMessageStore timers;

    Services(DefaultMessageStore s, MessageStoreConfig c, JsonObject plan) throws Exception {
        if (plan == null || !plan.has("services")) {
            return;
        }
        String root = c.getStorePathRootDir();
        timers = new TimerMessageStore(s, c, new TimerCheckpoint(root + "/config/timercheck"),
            new TimerMetrics(root + "/config/timermetrics"), new BrokerStatsManager("peer", false));
        s.setTimerMessageStore(timers);
    }

    boolean load() {
        return timers == null || timers.load();
    }

    void beforeStart() {
    }

    void start() {
        if (timers != null) {
            timers.start();
            timers.setShouldRunningDequeue(true);
        }
    }

    void shutdown() {
        if (timers != null) {
            timers.shutdown();
        }
    }
}
