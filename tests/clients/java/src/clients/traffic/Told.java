package traffic;

import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.JSONArray;
import com.alibaba.fastjson.JSONObject;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageClientExt;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/**
 * {@code NAMESRV}: carries out what stands on its input with RocketMQ's Java client, one JSON object a line, and says what the client was told.
 * The commands are those of {@code ../../../../README.md}.
 */
public final class Told {
    private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    private static final Map<String, DefaultMQProducer> PRODUCERS = new HashMap<>();
    /** What was begun under an id, ended by {@code stop}. */
    private static final Map<String, Runnable> ENDS = new LinkedHashMap<>();
    private static String namesrv;

    private Told() {}

    public static void main(String[] args) throws Exception {
        System.setOut(System.err); // where the client's log begins with words of its own
        namesrv = args[0];
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JSONObject one = JSON.parseObject(line);
            String error = null;
            try {
                carryOut(one);
            } catch (Exception e) {
                error = e.getClass().getSimpleName() + ": " + Clients.firstLine(e);
            }
            say("done", "do", one.getString("do"), "error", error);
        }
        new ArrayList<>(ENDS.values()).forEach(Runnable::run);
        System.exit(0);
    }

    private static void carryOut(JSONObject one) throws Exception {
        switch (one.getString("do")) {
            case "producer" -> producer(one);
            case "send" -> send(one);
            case "half" -> half(one);
            case "consumer" -> consumer(one);
            case "admin" -> administer(one);
            case "stop" -> ENDS.remove(one.getString("id")).run();
            default -> throw new IllegalArgumentException("unknown command " + one.getString("do"));
        }
    }

    private static synchronized void say(String told, Object... pairs) {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("told", told);
        for (int i = 0; i < pairs.length; i += 2) {
            if (pairs[i + 1] != null) {
                line.put((String) pairs[i], pairs[i + 1]);
            }
        }
        OUT.println(Truth.text(line));
    }

    private static <C extends ClientConfig> C quick(C client, String id) {
        client.setNamesrvAddr(namesrv);
        client.setInstanceName(id);
        client.setClientIP("127.0.0.1");
        client.setVipChannelEnabled(false);
        client.setPollNameServerInterval(1000);
        client.setHeartbeatBrokerInterval(1000);
        client.setPersistConsumerOffsetInterval(1000);
        return client;
    }

    // Producers

    private static void producer(JSONObject one) throws Exception {
        String id = one.getString("id"), group = one.getString("group");
        DefaultMQProducer made = one.containsKey("plan") ? new TransactionMQProducer(group) : new DefaultMQProducer(group);
        if (made instanceof TransactionMQProducer deciding) {
            deciding.setTransactionListener(new Decider());
        }
        quick(made, id).setSendMsgTimeout(10000);
        made.start();
        PRODUCERS.put(id, made);
        ENDS.put(id, made::shutdown);
    }

    private static Message message(JSONObject said) {
        Message made = new Message(said.getString("topic"), said.getString("body").getBytes(StandardCharsets.UTF_8));
        made.setFlag(said.getIntValue("flag"));
        if (!said.getString("tag").isEmpty()) {
            made.setTags(said.getString("tag"));
        }
        made.setKeys(said.getString("key"));
        if (said.getIntValue("delay") > 0) {
            made.setDelayTimeLevel(said.getIntValue("delay"));
        }
        said.getJSONObject("properties").forEach((name, value) -> made.putUserProperty(name, String.valueOf(value)));
        return made;
    }

    private static void send(JSONObject one) throws Exception {
        DefaultMQProducer from = PRODUCERS.get(one.getString("id"));
        JSONArray all = one.getJSONArray("messages");
        JSONObject first = all == null ? one.getJSONObject("message") : all.getJSONObject(0);
        MessageQueue to = new MessageQueue(first.getString("topic"), first.getString("broker"), first.getIntValue("queue"));
        List<Message> made = new ArrayList<>();
        for (int i = 0; i < (all == null ? 1 : all.size()); i++) {
            made.add(message(all == null ? first : all.getJSONObject(i)));
        }
        String[] keys = made.stream().map(Message::getKeys).toArray(String[]::new);
        switch (one.getString("mode")) {
            case "sync" -> {
                try {
                    sent("sent", keys, all == null ? from.send(made.get(0), to) : from.send(made, to));
                } catch (Exception e) {
                    say("sent", "keys", List.of(keys), "error", e.getClass().getSimpleName() + ": " + Clients.firstLine(e));
                }
            }
            case "async" -> {
                CountDownLatch done = new CountDownLatch(1);
                from.send(made.get(0), to, new SendCallback() {
                    @Override
                    public void onSuccess(SendResult result) {
                        sent("sent", keys, result);
                        done.countDown();
                    }

                    @Override
                    public void onException(Throwable e) {
                        say("sent", "keys", List.of(keys), "error", e.getClass().getSimpleName() + ": " + Clients.firstLine(e));
                        done.countDown();
                    }
                });
                done.await(30, TimeUnit.SECONDS);
            }
            case "oneway" -> from.sendOneway(made.get(0), to);
            default -> throw new IllegalArgumentException("unknown mode " + one.getString("mode"));
        }
    }

    private static void sent(String kind, String[] keys, SendResult result, Object... more) {
        List<Object> pairs = new ArrayList<>(Arrays.asList("keys", List.of(keys), "status", result.getSendStatus(), "msgId", result.getMsgId(),
            "offsetMsgId", result.getOffsetMsgId(), "topic", result.getMessageQueue().getTopic(), "queueId", result.getMessageQueue().getQueueId(),
            "broker", result.getMessageQueue().getBrokerName(), "queueOffset", result.getQueueOffset(), "transactionId", result.getTransactionId(),
            "regionId", result.getRegionId(), "traceOn", result.isTraceOn()));
        pairs.addAll(List.of(more));
        say(kind, pairs.toArray());
    }

    private static void half(JSONObject one) throws Exception {
        TransactionMQProducer from = (TransactionMQProducer) PRODUCERS.get(one.getString("id"));
        JSONObject said = one.getJSONObject("message");
        Message made = message(said);
        made.putUserProperty("plan", one.getString("plan"));
        Clients.turn(from, made.getTopic(), said.getIntValue("queue"));
        var result = from.sendMessageInTransaction(made, null);
        sent("half", new String[] {made.getKeys()}, result, "state", result.getLocalTransactionState());
    }

    /** Answers halves as their property {@code plan} says: at once, or at the check of that number. */
    private static final class Decider implements TransactionListener {
        private final Map<String, AtomicInteger> checks = new ConcurrentHashMap<>();

        @Override
        public LocalTransactionState executeLocalTransaction(Message m, Object arg) {
            say("executing", "keys", List.of(m.getKeys()), "transactionId", m.getTransactionId(), "properties", new TreeMap<>(m.getProperties()));
            return switch (m.getUserProperty("plan")) {
                case "commit" -> LocalTransactionState.COMMIT_MESSAGE;
                case "rollback" -> LocalTransactionState.ROLLBACK_MESSAGE;
                default -> LocalTransactionState.UNKNOW;
            };
        }

        @Override
        public LocalTransactionState checkLocalTransaction(MessageExt m) {
            int times = checks.computeIfAbsent(m.getKeys(), key -> new AtomicInteger()).incrementAndGet();
            say("checked", told(m, "check", times));
            return switch (m.getUserProperty("plan")) {
                case "commit-at-first" -> LocalTransactionState.COMMIT_MESSAGE;
                case "rollback-at-first" -> LocalTransactionState.ROLLBACK_MESSAGE;
                case "commit-at-second" -> times > 1 ? LocalTransactionState.COMMIT_MESSAGE : LocalTransactionState.UNKNOW;
                default -> LocalTransactionState.UNKNOW;
            };
        }
    }

    // Consumers

    private static Object[] told(MessageExt m, Object... more) {
        List<Object> pairs = new ArrayList<>(Arrays.asList("topic", m.getTopic(), "keys", List.of(m.getKeys()), "tags", m.getTags(), "body",
            new String(m.getBody(), StandardCharsets.UTF_8), "msgId", m.getMsgId(), "offsetMsgId",
            m instanceof MessageClientExt own ? own.getOffsetMsgId() : null, "queueId", m.getQueueId(), "queueOffset", m.getQueueOffset(),
            "reconsumeTimes", m.getReconsumeTimes(), "storeSize", m.getStoreSize(), "sysFlag", m.getSysFlag(), "flag", m.getFlag(),
            "bodyCRC", m.getBodyCRC(), "properties", new TreeMap<>(m.getProperties()), "commitLogOffset", m.getCommitLogOffset(),
            "prepared", m.getPreparedTransactionOffset()));
        pairs.addAll(List.of(more));
        return pairs.toArray();
    }

    private static void consumer(JSONObject one) throws Exception {
        String id = one.getString("id");
        JSONObject fails = one.getJSONObject("fails");
        DefaultMQPushConsumer made = quick(new DefaultMQPushConsumer(one.getString("group")), id);
        made.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        made.setConsumeMessageBatchMaxSize(1);
        made.setSuspendCurrentQueueTimeMillis(200);
        if (one.getIntValue("maxReconsumeTimes") > 0) {
            made.setMaxReconsumeTimes(one.getIntValue("maxReconsumeTimes"));
        }
        if (one.getBooleanValue("broadcast")) {
            made.setMessageModel(Scenarios.messageModel("BROADCASTING"));
        }
        if (one.getBooleanValue("orderly")) {
            made.registerMessageListener((MessageListenerOrderly) (some, context) ->
                isTaken(id, fails, some) ? ConsumeOrderlyStatus.SUCCESS : ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT);
        } else {
            made.registerMessageListener((MessageListenerConcurrently) (some, context) ->
                isTaken(id, fails, some) ? ConsumeConcurrentlyStatus.CONSUME_SUCCESS : ConsumeConcurrentlyStatus.RECONSUME_LATER);
        }
        for (var each : one.getJSONObject("topics").entrySet()) {
            JSONObject chosen = (JSONObject) each.getValue();
            String expression = chosen.getString("expression");
            made.subscribe(each.getKey(), chosen.getString("type").equals("SQL92") ? MessageSelector.bySql(expression) : MessageSelector.byTag(expression));
        }
        made.start();
        ENDS.put(id, made::shutdown);
    }

    private static boolean isTaken(String id, JSONObject fails, List<MessageExt> some) {
        for (MessageExt m : some) {
            say("received", told(m, "consumer", id));
            if (fails != null && m.getReconsumeTimes() < fails.getIntValue(m.getKeys())) {
                return false;
            }
        }
        return true;
    }

    // Administration

    /** Makes a topic, lists it and deletes it again. */
    private static void administer(JSONObject one) throws Exception {
        DefaultMQAdminExt admin = quick(new DefaultMQAdminExt(), "admin");
        admin.start();
        try {
            String topic = one.getString("topic"), broker = one.getString("broker");
            int queues = one.getIntValue("queues");
            admin.createAndUpdateTopicConfig(broker, new TopicConfig(topic, queues, queues, 6));
            int count = admin.examineTopicRouteInfo(topic).getQueueDatas().stream().mapToInt(row -> row.getWriteQueueNums()).sum();
            say("queues", "count", count);
            say("topics", "listed", admin.fetchAllTopicList().getTopicList().contains(topic));
            admin.deleteTopicInBroker(Set.of(broker), topic);
            say("deleted", "error", "");
        } finally {
            admin.shutdown();
        }
    }
}
