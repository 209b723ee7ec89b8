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
 * {@code NAMESRV}: executes commands from its input with RocketMQ's Java client, one JSON object a line, and prints what happened.
 * The commands are those of {@code ../../../../README.md}.
 */
public final class CommandClient {
    private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    private static final Map<String, DefaultMQProducer> PRODUCERS = new HashMap<>();
    /** What was begun under an id, ended by {@code stop}. */
    private static final Map<String, Runnable> ENDS = new LinkedHashMap<>();
    private static String namesrv;

    private CommandClient() {}

    public static void main(String[] args) throws Exception {
        System.setOut(System.err); // where the client's log begins with words of its own
        namesrv = args[0];
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JSONObject command = JSON.parseObject(line);
            String error = null;
            try {
                execute(command);
            } catch (Exception e) {
                error = e.getClass().getSimpleName() + ": " + Clients.firstLine(e);
            }
            printLine("done", "do", command.getString("do"), "error", error);
        }
        new ArrayList<>(ENDS.values()).forEach(Runnable::run);
        System.exit(0);
    }

    private static void execute(JSONObject command) throws Exception {
        switch (command.getString("do")) {
            case "producer" -> producer(command);
            case "send" -> send(command);
            case "half" -> half(command);
            case "consumer" -> consumer(command);
            case "admin" -> administer(command);
            case "stop" -> ENDS.remove(command.getString("id")).run();
            default -> throw new IllegalArgumentException("unknown command " + command.getString("do"));
        }
    }

    private static synchronized void printLine(String event, Object... pairs) {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("event", event);
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

    private static void producer(JSONObject command) throws Exception {
        String id = command.getString("id"), group = command.getString("group");
        DefaultMQProducer made = command.containsKey("plan") ? new TransactionMQProducer(group) : new DefaultMQProducer(group);
        if (made instanceof TransactionMQProducer deciding) {
            deciding.setTransactionListener(new Decider());
        }
        quick(made, id).setSendMsgTimeout(10000);
        made.start();
        PRODUCERS.put(id, made);
        ENDS.put(id, made::shutdown);
    }

    private static Message message(JSONObject fields) {
        Message made = new Message(fields.getString("topic"), fields.getString("body").getBytes(StandardCharsets.UTF_8));
        made.setFlag(fields.getIntValue("flag"));
        if (!fields.getString("tag").isEmpty()) {
            made.setTags(fields.getString("tag"));
        }
        made.setKeys(fields.getString("key"));
        if (fields.getIntValue("delay") > 0) {
            made.setDelayTimeLevel(fields.getIntValue("delay"));
        }
        fields.getJSONObject("properties").forEach((name, value) -> made.putUserProperty(name, String.valueOf(value)));
        return made;
    }

    private static void send(JSONObject command) throws Exception {
        DefaultMQProducer from = PRODUCERS.get(command.getString("id"));
        JSONArray all = command.getJSONArray("messages");
        JSONObject first = all == null ? command.getJSONObject("message") : all.getJSONObject(0);
        MessageQueue to = new MessageQueue(first.getString("topic"), first.getString("broker"), first.getIntValue("queue"));
        List<Message> made = new ArrayList<>();
        for (int i = 0; i < (all == null ? 1 : all.size()); i++) {
            made.add(message(all == null ? first : all.getJSONObject(i)));
        }
        String[] keys = made.stream().map(Message::getKeys).toArray(String[]::new);
        switch (command.getString("mode")) {
            case "sync" -> {
                try {
                    sent("sent", keys, all == null ? from.send(made.get(0), to) : from.send(made, to));
                } catch (Exception e) {
                    printLine("sent", "keys", List.of(keys), "error", e.getClass().getSimpleName() + ": " + Clients.firstLine(e));
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
                        printLine("sent", "keys", List.of(keys), "error", e.getClass().getSimpleName() + ": " + Clients.firstLine(e));
                        done.countDown();
                    }
                });
                done.await(30, TimeUnit.SECONDS);
            }
            case "oneway" -> from.sendOneway(made.get(0), to);
            default -> throw new IllegalArgumentException("unknown mode " + command.getString("mode"));
        }
    }

    private static void sent(String kind, String[] keys, SendResult result, Object... furtherPairs) {
        List<Object> pairs = new ArrayList<>(Arrays.asList("keys", List.of(keys), "status", result.getSendStatus(), "msgId", result.getMsgId(),
            "offsetMsgId", result.getOffsetMsgId(), "topic", result.getMessageQueue().getTopic(), "queueId", result.getMessageQueue().getQueueId(),
            "broker", result.getMessageQueue().getBrokerName(), "queueOffset", result.getQueueOffset(), "transactionId", result.getTransactionId(),
            "regionId", result.getRegionId(), "traceOn", result.isTraceOn()));
        pairs.addAll(List.of(furtherPairs));
        printLine(kind, pairs.toArray());
    }

    private static void half(JSONObject command) throws Exception {
        TransactionMQProducer from = (TransactionMQProducer) PRODUCERS.get(command.getString("id"));
        JSONObject fields = command.getJSONObject("message");
        Message made = message(fields);
        made.putUserProperty("plan", command.getString("plan"));
        Clients.turn(from, made.getTopic(), fields.getIntValue("queue"));
        var result = from.sendMessageInTransaction(made, null);
        sent("half", new String[] {made.getKeys()}, result, "state", result.getLocalTransactionState());
    }

    /** Answers halves as their property {@code plan} says: at once, or at the check of that number. */
    private static final class Decider implements TransactionListener {
        private final Map<String, AtomicInteger> checks = new ConcurrentHashMap<>();

        @Override
        public LocalTransactionState executeLocalTransaction(Message m, Object arg) {
            printLine("executing", "keys", m.getKeys() == null ? List.of() : List.of(m.getKeys()), "transactionId", m.getTransactionId(), "properties", new TreeMap<>(m.getProperties()));
            return switch (m.getUserProperty("plan")) {
                case "commit" -> LocalTransactionState.COMMIT_MESSAGE;
                case "rollback" -> LocalTransactionState.ROLLBACK_MESSAGE;
                default -> LocalTransactionState.UNKNOW;
            };
        }

        @Override
        public LocalTransactionState checkLocalTransaction(MessageExt m) {
            int times = checks.computeIfAbsent(m.getKeys(), key -> new AtomicInteger()).incrementAndGet();
            printLine("checked", messagePairs(m, "check", times));
            return switch (m.getUserProperty("plan")) {
                case "commit-at-first" -> LocalTransactionState.COMMIT_MESSAGE;
                case "rollback-at-first" -> LocalTransactionState.ROLLBACK_MESSAGE;
                case "commit-at-second" -> times > 1 ? LocalTransactionState.COMMIT_MESSAGE : LocalTransactionState.UNKNOW;
                default -> LocalTransactionState.UNKNOW;
            };
        }
    }

    // Consumers

    private static Object[] messagePairs(MessageExt m, Object... furtherPairs) {
        List<Object> pairs = new ArrayList<>(Arrays.asList("topic", m.getTopic(), "keys", m.getKeys() == null ? List.of() : List.of(m.getKeys()), "tags", m.getTags(), "body",
            new String(m.getBody(), StandardCharsets.UTF_8), "msgId", m.getMsgId(), "offsetMsgId",
            m instanceof MessageClientExt own ? own.getOffsetMsgId() : null, "queueId", m.getQueueId(), "queueOffset", m.getQueueOffset(),
            "reconsumeTimes", m.getReconsumeTimes(), "storeSize", m.getStoreSize(), "sysFlag", m.getSysFlag(), "flag", m.getFlag(),
            "bodyCRC", m.getBodyCRC(), "properties", new TreeMap<>(m.getProperties()), "commitLogOffset", m.getCommitLogOffset(),
            "prepared", m.getPreparedTransactionOffset()));
        pairs.addAll(List.of(furtherPairs));
        return pairs.toArray();
    }

    private static void consumer(JSONObject command) throws Exception {
        String id = command.getString("id");
        JSONObject fails = command.getJSONObject("fails");
        DefaultMQPushConsumer made = quick(new DefaultMQPushConsumer(command.getString("group")), id);
        made.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        made.setConsumeMessageBatchMaxSize(1);
        made.setSuspendCurrentQueueTimeMillis(200);
        if (command.getIntValue("maxReconsumeTimes") > 0) {
            made.setMaxReconsumeTimes(command.getIntValue("maxReconsumeTimes"));
        }
        if (command.getBooleanValue("broadcast")) {
            made.setMessageModel(Scenarios.messageModel("BROADCASTING"));
        }
        if (command.getBooleanValue("orderly")) {
            made.registerMessageListener((MessageListenerOrderly) (some, context) ->
                isTaken(id, fails, some) ? ConsumeOrderlyStatus.SUCCESS : ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT);
        } else {
            made.registerMessageListener((MessageListenerConcurrently) (some, context) ->
                isTaken(id, fails, some) ? ConsumeConcurrentlyStatus.CONSUME_SUCCESS : ConsumeConcurrentlyStatus.RECONSUME_LATER);
        }
        for (var each : command.getJSONObject("topics").entrySet()) {
            JSONObject chosen = (JSONObject) each.getValue();
            String expression = chosen.getString("expression");
            made.subscribe(each.getKey(), chosen.getString("type").equals("SQL92") ? MessageSelector.bySql(expression) : MessageSelector.byTag(expression));
        }
        made.start();
        ENDS.put(id, made::shutdown);
    }

    private static boolean isTaken(String id, JSONObject fails, List<MessageExt> some) {
        for (MessageExt m : some) {
            printLine("received", messagePairs(m, "consumer", id));
            if (fails != null && m.getReconsumeTimes() < fails.getIntValue(m.getKeys())) {
                return false;
            }
        }
        return true;
    }

    // Administration

    /** Makes a topic, lists it and deletes it again. */
    private static void administer(JSONObject command) throws Exception {
        DefaultMQAdminExt admin = quick(new DefaultMQAdminExt(), "admin");
        admin.start();
        try {
            String topic = command.getString("topic"), broker = command.getString("broker");
            int queues = command.getIntValue("queues");
            admin.createAndUpdateTopicConfig(broker, new TopicConfig(topic, queues, queues, 6));
            int count = admin.examineTopicRouteInfo(topic).getQueueDatas().stream().mapToInt(row -> row.getWriteQueueNums()).sum();
            printLine("queues", "count", count);
            printLine("topics", "listed", admin.fetchAllTopicList().getTopicList().contains(topic));
            admin.deleteTopicInBroker(Set.of(broker), topic);
            printLine("deleted", "error", "");
        } finally {
            admin.shutdown();
        }
    }
}
