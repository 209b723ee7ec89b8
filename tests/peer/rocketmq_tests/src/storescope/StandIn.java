package storescope;

import java.lang.reflect.Method;
import java.util.Properties;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.broker.BrokerController;
import org.apache.rocketmq.broker.offset.ConsumerOffsetManager;
import org.apache.rocketmq.broker.out.BrokerOuterAPI;
import org.apache.rocketmq.broker.subscription.SubscriptionGroupManager;
import org.apache.rocketmq.broker.topic.TopicConfigManager;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.admin.OffsetWrapper;
import org.apache.rocketmq.remoting.protocol.route.BrokerData;
import org.apache.rocketmq.remoting.protocol.subscription.SubscriptionGroupConfig;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.config.MessageStoreConfig;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;
import org.mockito.Mockito;
import org.mockito.stubbing.Answer;

/**
 * A broker object for tests whose broker runs elsewhere: each method that a test calls becomes a request of an administrator to that broker. A method without a
 * request throws, and says which one it was.
 */
public final class StandIn {
    private static DefaultMQAdminExt shared;
    private final String name;
    private final String address;
    private final BrokerConfig settings = new BrokerConfig();
    private final MessageStoreConfig storeSettings = new MessageStoreConfig();

    private StandIn(String name, BrokerData data) {
        this.name = name;
        address = data.selectBrokerAddr();
        settings.setBrokerName(name);
        settings.setBrokerClusterName(data.getCluster());
        settings.setNamesrvAddr(System.getProperty("namesrv"));
        storeSettings.setStorePathRootDir(System.getProperty("user.home") + "/no-store");
    }

    public static BrokerController of(String name, BrokerData data) {
        return new StandIn(name, data).broker();
    }

    public static synchronized DefaultMQAdminExt admin() {
        if (shared == null) {
            shared = new DefaultMQAdminExt("storescope_admin", 20_000);
            shared.setInstanceName("storescope-" + System.nanoTime());
            shared.setNamesrvAddr(System.getProperty("namesrv"));
            call(() -> {
                shared.start();
                return null;
            });
        }
        return shared;
    }

    public static <T> T call(Callable<T> request) {
        try {
            return request.call();
        } catch (RuntimeException e) {
            throw e;
        } catch (Exception e) {
            throw new IllegalStateException(e.toString(), e);
        }
    }

    private static <T> T object(Class<T> type, Answer<Object> methods) {
        return Mockito.mock(type, call -> {
            switch (call.getMethod().getName()) {
                case "toString": return "stand-in of " + type.getSimpleName();
                case "hashCode": return System.identityHashCode(call.getMock());
                case "equals": return call.getMock() == call.getArgument(0);
                default: return methods.answer(call);
            }
        });
    }

    private static Object none(Method method) {
        throw new UnsupportedOperationException("no request of an administrator for " + method.getDeclaringClass().getSimpleName() + "." + method.getName());
    }

    private BrokerController broker() {
        BrokerConfig config = object(BrokerConfig.class, setting(settings));
        MessageStoreConfig storeConfig = object(MessageStoreConfig.class, setting(storeSettings));
        DefaultMessageStore store = store();
        TopicConfigManager topics = topics();
        SubscriptionGroupManager groups = groups();
        ConsumerOffsetManager offsets = offsets();
        BrokerOuterAPI others = object(BrokerOuterAPI.class, call -> "refreshMetadata".equals(call.getMethod().getName()) ? null : none(call.getMethod()));
        return object(BrokerController.class, call -> {
            switch (call.getMethod().getName()) {
                case "getBrokerAddr": return address;
                case "getBrokerConfig": return config;
                case "getMessageStoreConfig": return storeConfig;
                case "getMessageStore": return store;
                case "getTopicConfigManager": return topics;
                case "getSubscriptionGroupManager": return groups;
                case "getConsumerOffsetManager": return offsets;
                case "getBrokerOuterAPI": return others;
                default: return none(call.getMethod());
            }
        });
    }

    /** Settings: a setter also sets the one of the running broker. */
    private Answer<Object> setting(Object own) {
        return call -> {
            String method = call.getMethod().getName();
            if (method.startsWith("set")) {
                Properties change = new Properties();
                change.setProperty(Character.toLowerCase(method.charAt(3)) + method.substring(4), String.valueOf((Object) call.getArgument(0)));
                admin().updateBrokerConfig(address, change);
            }
            return call.getMethod().invoke(own, call.getArguments());
        };
    }

    private DefaultMessageStore store() {
        return object(DefaultMessageStore.class, call -> {
            switch (call.getMethod().getName()) {
                case "getMinOffsetInQueue": return admin().minOffset(new MessageQueue(call.getArgument(0), name, call.getArgument(1)));
                case "getMaxOffsetInQueue": return admin().maxOffset(new MessageQueue(call.getArgument(0), name, call.getArgument(1)));
                case "dispatchBehindBytes": return Long.parseLong(admin().fetchBrokerRuntimeStats(address).getTable().getOrDefault("dispatchBehindBytes", "0"));
                default: return none(call.getMethod());
            }
        });
    }

    private TopicConfigManager topics() {
        ConcurrentHashMap<String, TopicConfig> table = new ConcurrentHashMap<>() {
            @Override public TopicConfig get(Object topic) {
                return call(() -> admin().examineTopicConfig(address, (String) topic));
            }
        };
        return object(TopicConfigManager.class, call -> {
            switch (call.getMethod().getName()) {
                case "getTopicConfigTable": return table;
                case "selectTopicConfig": return table.get(call.getArgument(0));
                case "updateTopicConfig": admin().createAndUpdateTopicConfig(address, call.getArgument(0)); return null;
                default: return none(call.getMethod());
            }
        });
    }

    private SubscriptionGroupManager groups() {
        return object(SubscriptionGroupManager.class, call -> {
            switch (call.getMethod().getName()) {
                case "updateSubscriptionGroupConfig": admin().createAndUpdateSubscriptionGroupConfig(address, call.getArgument(0)); return null;
                case "findSubscriptionGroupConfig": return group(call.getArgument(0));
                default: return none(call.getMethod());
            }
        });
    }

    private SubscriptionGroupConfig group(String group) throws Exception {
        SubscriptionGroupConfig found = admin().getAllSubscriptionGroup(address, 20_000).getSubscriptionGroupTable().get(group);
        if (found == null) { // a broker declares it when it is asked for
            found = new SubscriptionGroupConfig();
            found.setGroupName(group);
            admin().createAndUpdateSubscriptionGroupConfig(address, found);
        }
        return found;
    }

    private ConsumerOffsetManager offsets() {
        return object(ConsumerOffsetManager.class, call -> {
            String method = call.getMethod().getName();
            if (!"queryOffset".equals(method) && !"queryPullOffset".equals(method)) {
                return none(call.getMethod());
            }
            MessageQueue queue = new MessageQueue(call.getArgument(1), name, call.getArgument(2));
            OffsetWrapper row = admin().examineConsumeStats(address, call.getArgument(0), queue.getTopic(), 20_000).getOffsetTable().get(queue);
            return row == null ? -1L : "queryOffset".equals(method) ? row.getConsumerOffset() : row.getPullOffset();
        });
    }
}
