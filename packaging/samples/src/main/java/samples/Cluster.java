package samples;

import java.nio.file.Path;
import java.util.Map;
import org.apache.rocketmq.broker.BrokerController;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.namesrv.NamesrvConfig;
import org.apache.rocketmq.namesrv.NamesrvController;
import org.apache.rocketmq.remoting.netty.NettyClientConfig;
import org.apache.rocketmq.remoting.netty.NettyServerConfig;
import org.apache.rocketmq.store.config.FlushDiskType;
import org.apache.rocketmq.store.config.MessageStoreConfig;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/** One name server and one broker of this very process, both on the loopback address, over the store in {@code root}. */
final class Cluster {
    static final String LOOPBACK = "127.0.0.1";
    static final int NAMESRV_PORT = 19876;
    static final int BROKER_PORT = 10911;

    private final NamesrvController namesrv;
    private final BrokerController broker;

    Cluster(Path root, Path scratch) throws Exception {
        NamesrvConfig names = new NamesrvConfig();
        names.setRocketmqHome(scratch.toString());
        names.setKvConfigPath(scratch.resolve("kvConfig.json").toString());
        names.setConfigStorePath(scratch.resolve("namesrv.properties").toString());
        namesrv = new NamesrvController(names, server(NAMESRV_PORT));
        require(namesrv.initialize(), "name server");
        namesrv.start();

        BrokerConfig config = new BrokerConfig();
        config.setRocketmqHome(scratch.toString());
        config.setNamesrvAddr(address());
        config.setBrokerClusterName("DefaultCluster");
        config.setBrokerName("broker-a");
        config.setBrokerIP1(LOOPBACK);
        config.setBrokerIP2(LOOPBACK);
        config.setListenPort(BROKER_PORT);
        config.setAutoCreateTopicEnable(false);
        config.setEnablePropertyFilter(true);
        config.setTransactionTimeOut(4000);
        config.setTransactionCheckInterval(10000);
        broker = new BrokerController(config, server(BROKER_PORT), new NettyClientConfig(), store(root));
        require(broker.initialize(), "broker");
        broker.start();
        Thread.sleep(2000); // until the broker is registered
    }

    static String address() {
        return LOOPBACK + ":" + NAMESRV_PORT;
    }

    /** Small files, so that a small store has several of each. */
    private static MessageStoreConfig store(Path root) {
        MessageStoreConfig config = new MessageStoreConfig();
        config.setStorePathRootDir(root.toString());
        config.setMappedFileSizeCommitLog(1 << 20);
        config.setMappedFileSizeConsumeQueue(300 * 20);
        config.setMapperFileSizeBatchConsumeQueue(100 * 46);
        config.setMaxHashSlotNum(500);
        config.setMaxIndexNum(2000);
        config.setFlushDiskType(FlushDiskType.ASYNC_FLUSH);
        config.setHaListenPort(0);
        config.setTimerWheelEnable(false);
        config.setEnableCompaction(false);
        config.setDeleteWhen("99"); // never: nothing is old here
        return config;
    }

    private static NettyServerConfig server(int port) {
        NettyServerConfig config = new NettyServerConfig();
        config.setBindAddress(LOOPBACK);
        config.setListenPort(port);
        return config;
    }

    private static void require(boolean started, String what) {
        if (!started) {
            throw new IllegalStateException(what + " did not start; is its port taken?");
        }
    }

    void createTopics(Map<String, Integer> queues, String batchTopic) throws Exception {
        DefaultMQAdminExt admin = new DefaultMQAdminExt();
        admin.setNamesrvAddr(address());
        admin.setInstanceName("admin");
        admin.start();
        String at = LOOPBACK + ":" + BROKER_PORT;
        for (Map.Entry<String, Integer> topic : queues.entrySet()) {
            admin.createAndUpdateTopicConfig(at, new TopicConfig(topic.getKey(), topic.getValue(), topic.getValue(), 6));
        }
        TopicConfig batches = new TopicConfig(batchTopic, 1, 1, 6);
        batches.setAttributes(Map.of("+queue.type", "BatchCQ"));
        admin.createAndUpdateTopicConfig(at, batches);
        admin.shutdown();
    }

    /** The broker tells the name server of its topics in its own time. */
    void awaitRoutes(Iterable<String> topics) throws Exception {
        DefaultMQAdminExt admin = new DefaultMQAdminExt();
        admin.setNamesrvAddr(address());
        admin.setInstanceName("routes");
        admin.start();
        for (String topic : topics) {
            awaitRoute(admin, topic);
        }
        admin.shutdown();
    }

    private static void awaitRoute(DefaultMQAdminExt admin, String topic) throws Exception {
        for (int second = 0; ; second++) {
            try {
                admin.examineTopicRouteInfo(topic);
                return;
            } catch (MQClientException unknown) {
                if (second == 60) {
                    throw unknown;
                }
                Thread.sleep(1000);
            }
        }
    }

    void close() throws Exception {
        Thread.sleep(6000); // the broker writes consumer offsets every five seconds
        broker.shutdown();
        namesrv.shutdown();
    }
}
