package peer;

import com.google.gson.JsonObject;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.config.MessageStoreConfig;

/** The services of a broker that the plan asks for ({@code services}): here the delay levels, which the store has itself. */
final class Services {
    private final DefaultMessageStore store;
    private final boolean wanted;

    Services(DefaultMessageStore s, MessageStoreConfig c, JsonObject plan) {
        store = s;
        wanted = plan != null && plan.has("services");
    }

    boolean load() {
        return true;
    }

    void beforeStart() throws Exception {
        if (!wanted) {
            Compat.quiet(store);
        }
    }

    void start() {
    }

    void shutdown() {
    }
}
