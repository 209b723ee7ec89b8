package org.apache.rocketmq.test.base;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ForkJoinPool;
import java.util.function.BooleanSupplier;
import org.apache.rocketmq.broker.BrokerController;
import org.apache.rocketmq.client.impl.consumer.DefaultMQPushConsumerImpl;
import org.apache.rocketmq.client.impl.consumer.RebalanceImpl;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.common.attribute.CQType;
import org.apache.rocketmq.common.attribute.TopicMessageType;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.namesrv.NamesrvController;
import org.apache.rocketmq.remoting.protocol.route.BrokerData;
import org.apache.rocketmq.remoting.protocol.subscription.SubscriptionGroupConfig;
import org.apache.rocketmq.test.client.rmq.RMQAsyncSendProducer;
import org.apache.rocketmq.test.client.rmq.RMQNormalConsumer;
import org.apache.rocketmq.test.client.rmq.RMQNormalProducer;
import org.apache.rocketmq.test.client.rmq.RMQTransactionalProducer;
import org.apache.rocketmq.test.factory.ConsumerFactory;
import org.apache.rocketmq.test.listener.AbstractListener;
import org.apache.rocketmq.test.util.MQAdminTestUtils;
import org.apache.rocketmq.test.util.MQRandomUtils;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;
import storescope.StandIn;

/**
 * Takes the place of the class of this name in RocketMQ's jar of tests: it stands before the jar on the class path. Where that one starts a name server and three
 * brokers in this process, this one uses those behind the name server of {@code -Dnamesrv}. Names and signatures are those that the tests use.
 */
public class BaseConf {
    public static final String NAMESRV_ADDR = System.getProperty("namesrv");
    protected static final String CLUSTER_NAME;
    protected static final String BROKER1_NAME;
    protected static final String BROKER2_NAME;
    protected static final String BROKER3_NAME;
    protected static final int BROKER_NUM = 3;
    protected static final int WAIT_TIME = 5;
    protected static final int CONSUME_TIME = 120_000;
    protected static final int QUEUE_NUMBERS = 8;
    protected static NamesrvController namesrvController;
    protected static BrokerController brokerController1;
    protected static BrokerController brokerController2;
    protected static BrokerController brokerController3;
    protected static List<BrokerController> brokerControllerList;
    protected static Map<String, BrokerController> brokerControllerMap = new LinkedHashMap<>();
    protected static List<Object> mqClients = new ArrayList<>();
    protected static boolean debug;

    static {
        try {
            Map<String, BrokerData> brokers = new TreeMap<>(StandIn.admin().examineBrokerClusterInfo().getBrokerAddrTable());
            if (brokers.size() != BROKER_NUM) {
                throw new IllegalStateException("expected three brokers, found " + brokers.keySet());
            }
            brokers.forEach((name, data) -> brokerControllerMap.put(name, StandIn.of(name, data)));
            String[] names = brokers.keySet().toArray(new String[0]);
            BROKER1_NAME = names[0];
            BROKER2_NAME = names[1];
            BROKER3_NAME = names[2];
            CLUSTER_NAME = brokers.get(BROKER1_NAME).getCluster();
        } catch (Exception e) {
            throw new ExceptionInInitializerError(e);
        }
        brokerController1 = brokerControllerMap.get(BROKER1_NAME);
        brokerController2 = brokerControllerMap.get(BROKER2_NAME);
        brokerController3 = brokerControllerMap.get(BROKER3_NAME);
        brokerControllerList = Arrays.asList(brokerController1, brokerController2, brokerController3);
        IntegrationTestBase.initMQAdmin(NAMESRV_ADDR);
    }

    public static void waitBrokerRegistered(String names, String cluster, int expected) {
        until(30_000, () -> StandIn.call(() -> StandIn.admin().examineBrokerClusterInfo().getBrokerAddrTable().size()) == expected);
    }

    public boolean awaitDispatchMs(long limit) {
        return until(limit, () -> brokerControllerList.stream().allMatch(b -> b.getMessageStore().dispatchBehindBytes() == 0));
    }

    private static boolean until(long limit, BooleanSupplier isSo) {
        for (long end = System.currentTimeMillis() + limit; System.currentTimeMillis() <= end;) {
            if (isSo.getAsBoolean()) {
                return true;
            }
            StandIn.call(() -> {
                Thread.sleep(50);
                return null;
            });
        }
        return false;
    }

    public static Set<String> getBrokers() {
        return new LinkedHashSet<>(brokerControllerMap.keySet());
    }

    public static String initTopic() {
        return initTopicWithName(MQRandomUtils.getRandomTopic());
    }

    public static String initTopic(TopicMessageType type) {
        return initTopicWithName(MQRandomUtils.getRandomTopic(), type);
    }

    public static String initTopicWithName(String topic) {
        return initTopicOnSampleTopicBroker(topic, CLUSTER_NAME);
    }

    public static String initTopicWithName(String topic, TopicMessageType type) {
        return initTopicOnSampleTopicBroker(topic, CLUSTER_NAME, type);
    }

    public static String initTopicOnSampleTopicBroker(String sample) {
        return initTopicOnSampleTopicBroker(MQRandomUtils.getRandomTopic(), sample);
    }

    public static String initTopicOnSampleTopicBroker(String sample, TopicMessageType type) {
        return initTopicOnSampleTopicBroker(MQRandomUtils.getRandomTopic(), sample, type);
    }

    public static String initTopicOnSampleTopicBroker(String topic, String sample) {
        IntegrationTestBase.initTopic(topic, NAMESRV_ADDR, sample, CQType.SimpleCQ);
        return topic;
    }

    public static String initTopicOnSampleTopicBroker(String topic, String sample, TopicMessageType type) {
        IntegrationTestBase.initTopic(topic, NAMESRV_ADDR, sample, type);
        return topic;
    }

    public static String initConsumerGroup() {
        return initConsumerGroup(MQRandomUtils.getRandomConsumerGroup());
    }

    public static String initConsumerGroup(String group) {
        SubscriptionGroupConfig config = new SubscriptionGroupConfig();
        config.setGroupName(group);
        return initConsumerGroup(config);
    }

    public static String initConsumerGroup(SubscriptionGroupConfig group) {
        MQAdminTestUtils.createSub(NAMESRV_ADDR, CLUSTER_NAME, group);
        return group.getGroupName();
    }

    private static <T> T noted(T client) {
        mqClients.add(client);
        return client;
    }

    public static DefaultMQAdminExt getAdmin(String names) {
        DefaultMQAdminExt admin = noted(new DefaultMQAdminExt(3_000));
        admin.setNamesrvAddr(names);
        admin.setPollNameServerInterval(100);
        return admin;
    }

    public static RMQNormalProducer getProducer(String names, String topic) {
        return getProducer(names, topic, false);
    }

    public static RMQNormalProducer getProducer(String names, String topic, boolean tls) {
        return noted(new RMQNormalProducer(names, topic, tls));
    }

    public static RMQNormalProducer getProducer(String names, String topic, String group, String instance) {
        return noted(new RMQNormalProducer(names, topic, group, instance));
    }

    public static RMQTransactionalProducer getTransactionalProducer(String names, String topic, TransactionListener listener) {
        return noted(new RMQTransactionalProducer(names, topic, false, listener));
    }

    public static RMQAsyncSendProducer getAsyncProducer(String names, String topic) {
        return noted(new RMQAsyncSendProducer(names, topic));
    }

    public static RMQNormalConsumer getConsumer(String names, String topic, String expression, AbstractListener listener) {
        return getConsumer(names, topic, expression, listener, false);
    }

    public static RMQNormalConsumer getConsumer(String names, String topic, String expression, AbstractListener listener, boolean tls) {
        return getConsumer(names, initConsumerGroup(), topic, expression, listener, tls);
    }

    public static RMQNormalConsumer getConsumer(String names, String group, String topic, String expression, AbstractListener listener) {
        return getConsumer(names, group, topic, expression, listener, false);
    }

    public static RMQNormalConsumer getConsumer(String names, String group, String topic, String expression, AbstractListener listener, boolean tls) {
        RMQNormalConsumer consumer = noted(ConsumerFactory.getRMQNormalConsumer(names, group, topic, expression, listener, tls));
        until(5_000, () -> hasItsQueues(consumer, topic));
        return consumer;
    }

    /**
     * A consumer of a new group asks each queue for its offset, and then, where there is none, for its end: of a message that is sent between the two questions no
     * release hands it anything. Tests send at once, so they get their consumer when it has asked. A second consumer of a group gets some queues only: any suffices.
     */
    private static boolean hasItsQueues(RMQNormalConsumer consumer, String topic) {
        DefaultMQPushConsumerImpl inside = consumer.getConsumer().getDefaultMQPushConsumerImpl();
        RebalanceImpl queues = inside.getRebalanceImpl();
        Set<MessageQueue> all = queues.getTopicSubscribeInfoTable().get(topic);
        long taken = queues.getProcessQueueTable().keySet().stream().filter(queue -> queue.getTopic().equals(topic)).count();
        List<String> members = inside.getmQClientFactory().findConsumerIdList(topic, inside.groupName());
        boolean isAlone = members == null || members.size() < 2;
        return all != null && taken >= (isAlone ? all.size() : 1);
    }

    public static void shutdown() {
        List<Object> clients = new ArrayList<>(mqClients);
        mqClients.clear();
        shutdown(clients);
    }

    /** Every kind of client has a method of this name; RocketMQ's tests do not wait for it. */
    public static void shutdown(List<Object> clients) {
        for (Object client : clients) {
            ForkJoinPool.commonPool().execute(() -> StandIn.call(() -> client.getClass().getMethod("shutdown").invoke(client)));
        }
    }
}
