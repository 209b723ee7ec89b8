package traffic;

import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.JSONArray;
import com.alibaba.fastjson.JSONObject;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Queue;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.rocketmq.broker.BrokerController;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.common.MixAll;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.common.namesrv.NamesrvConfig;
import org.apache.rocketmq.namesrv.NamesrvController;
import org.apache.rocketmq.remoting.netty.NettyClientConfig;
import org.apache.rocketmq.remoting.netty.NettyServerConfig;
import org.apache.rocketmq.store.MessageStore;
import org.apache.rocketmq.store.config.MessageStoreConfig;

/**
 * {@code StoreReadings DIR}: reads store after store through real brokers in this process. Each line of the input is a JSON object:
 *
 * <pre>
 * store       the folder, which the broker opens in place
 * config      any keys of broker.conf
 * topics      topics to read; without it, all that the broker or its queues name
 * properties  true: every message comes with its properties
 * keys        [[topic, key], ...] to look up in the index
 * groups      {group: [topic, ...]}: real push consumers, each from where the group stands
 * commit      {group: {topic: {queue: offset}}}: what groups commit at the end
 * await       {topic: count}: read on until so many messages of the topic came (awaitMs, 10,000)
 * startMs     how long the broker may take to start (30,000)
 * </pre>
 *
 * Each gives a line {@code reading}, and {@code closed} once its broker has shut down; the next store is read meanwhile.
 */
public final class StoreReadings {
    private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    private static final int DISPATCH_MS = 15_000;
    private static final int GROUP_QUIET_MS = 8_000;
    private static final int CORRECTION_QUIET_MS = 25_000; // a client waits for 10 s before it takes the broker's correction of an offset
    private static final int PULL_BATCH = 32;
    private static final int MAX_MESSAGES_OF_KEY = 10_000; // a broker returns maxMsgsNumBatch of them at most

    private final JSONObject command;
    private final Path store;
    private final Map<String, Object> line = new LinkedHashMap<>();
    private final String id = "r" + System.nanoTime();
    private final Properties properties = new Properties();
    private NamesrvController names;
    private BrokerController broker;
    private DefaultMQPullConsumer consumer;
    private String namesAddress;
    private String brokerName;

    private StoreReadings(JSONObject command) {
        this.command = command;
        this.store = Path.of(command.getString("store")).toAbsolutePath();
    }

    public static void main(String[] args) throws Exception {
        Traffic.quiet(Path.of(args[0]));
        ExecutorService ends = Executors.newFixedThreadPool(8);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String text = lines.readLine(); text != null; text = lines.readLine()) {
            StoreReadings reading = new StoreReadings(JSON.parseObject(text));
            boolean isUsable = reading.run();
            print(reading.line);
            if (!isUsable) {
                Runtime.getRuntime().halt(3); // a broker that hangs in its start cannot be shut down
            }
            ends.submit(reading::close);
        }
        ends.shutdown();
        ends.awaitTermination(2, TimeUnit.MINUTES);
        Runtime.getRuntime().halt(0);
    }

    private static synchronized void print(Map<String, Object> line) {
        OUT.println(Truth.text(line));
    }

    /** Returns false if this process can go on with no other store. */
    private boolean run() {
        line.put("kind", "reading");
        line.put("store", command.getString("store"));
        long begun = System.currentTimeMillis();
        boolean isStarted = false;
        try {
            isStarted = within(intOption("startMs", 30_000), this::start);
            line.put("started", isStarted);
            line.put("startMs", System.currentTimeMillis() - begun);
            if (isStarted) {
                read();
            }
        } catch (TimeoutException e) {
            line.put("started", isStarted);
            line.put("error", "no start in time: " + stack());
            return false;
        } catch (Throwable e) {
            line.put("started", isStarted);
            line.put("error", String.valueOf(e instanceof ExecutionException ? e.getCause() : e));
        }
        line.put("tookMs", System.currentTimeMillis() - begun);
        return true;
    }

    private int intOption(String name, int fallback) {
        return command.containsKey(name) ? command.getIntValue(name) : fallback;
    }

    private Thread starter;

    private <T> T within(int ms, Callable<T> call) throws Exception {
        ExecutorService thread = Executors.newSingleThreadExecutor(r -> starter = new Thread(r, "start"));
        try {
            Future<T> future = thread.submit(call);
            return future.get(ms, TimeUnit.MILLISECONDS);
        } finally {
            thread.shutdown();
        }
    }

    private String stack() {
        List<String> frames = new ArrayList<>();
        for (StackTraceElement frame : starter.getStackTrace()) {
            frames.add(frame.getClassName() + "." + frame.getMethodName());
        }
        return String.join(" < ", frames.subList(0, Math.min(8, frames.size())));
    }

    // Servers

    private boolean start() throws Exception {
        int port = freePort();
        namesAddress = "127.0.0.1:" + (port + 2);
        NettyServerConfig namesServer = new NettyServerConfig();
        namesServer.setListenPort(port + 2);
        Properties namesProperties = new Properties();
        namesProperties.put("bindAddress", "127.0.0.1"); // since 5.0
        MixAll.properties2Object(namesProperties, namesServer);
        names = new NamesrvController(new NamesrvConfig(), namesServer);
        names.initialize();
        names.start();

        properties.putAll(Standing.config(store.getParent(), "broker-a", port, namesAddress));
        properties.put("storePathRootDir", store.toString());
        properties.put("storePathCommitLog", store.resolve("commitlog").toString());
        properties.put("diskMaxUsedSpaceRatio", "95");
        JSONObject wanted = command.getJSONObject("config");
        if (wanted != null) {
            wanted.forEach((key, value) -> properties.put(key, String.valueOf(value)));
        }
        BrokerConfig brokerConfig = new BrokerConfig();
        NettyServerConfig server = new NettyServerConfig();
        NettyClientConfig client = new NettyClientConfig();
        MessageStoreConfig storeConfig = new MessageStoreConfig();
        for (Object target : List.of(brokerConfig, server, client, storeConfig)) {
            MixAll.properties2Object(properties, target);
        }
        brokerName = brokerConfig.getBrokerName();
        broker = new BrokerController(brokerConfig, server, client, storeConfig);
        broker.getConfiguration().registerConfig(properties);
        if (!broker.initialize()) {
            line.put("error", "initialize() returned false");
            return false;
        }
        MessageStore messageStore = broker.getMessageStore();
        line.put("loadedMinPhyOffset", messageStore.getMinPhyOffset());
        line.put("loadedMaxPhyOffset", messageStore.getMaxPhyOffset());
        broker.start();
        return true;
    }

    private static int freePort() throws Exception {
        for (;;) { // below the ports that the system gives to connections
            int port = ThreadLocalRandom.current().nextInt(20_000, 32_000);
            try (ServerSocket fast = bound(port - 2); ServerSocket main = bound(port); ServerSocket ha = bound(port + 1); ServerSocket names = bound(port + 2)) {
                return port;
            } catch (java.net.BindException e) {
                // another one
            }
        }
    }

    private static ServerSocket bound(int port) throws Exception {
        ServerSocket socket = new ServerSocket();
        socket.setReuseAddress(true);
        socket.bind(new InetSocketAddress(InetAddress.getByName("127.0.0.1"), port));
        return socket;
    }

    private void close() {
        Map<String, Object> closed = new LinkedHashMap<>();
        closed.put("kind", "closed");
        closed.put("store", command.getString("store"));
        long begun = System.currentTimeMillis();
        for (Runnable end : List.<Runnable>of(
            () -> consumer.shutdown(), () -> broker.shutdown(), () -> names.shutdown())) {
            try {
                end.run();
            } catch (NullPointerException e) {
                // was not started, or only in part
            } catch (Throwable e) {
                closed.put("error", String.valueOf(e));
            }
        }
        closed.put("tookMs", System.currentTimeMillis() - begun);
        print(closed);
    }

    // Clients

    private <C extends ClientConfig> C client(C client, String name) {
        client.setNamesrvAddr(namesAddress);
        client.setInstanceName(id + name);
        client.setClientIP("127.0.0.1");
        client.setVipChannelEnabled(false);
        client.setPollNameServerInterval(1000);
        client.setHeartbeatBrokerInterval(1000);
        client.setPersistConsumerOffsetInterval(500);
        return client;
    }

    private void read() throws Exception {
        MessageStore messageStore = broker.getMessageStore();
        long until = System.currentTimeMillis() + DISPATCH_MS;
        while (messageStore.dispatchBehindBytes() > 0 && System.currentTimeMillis() < until) {
            Thread.sleep(20);
        }
        line.put("behindBytes", messageStore.dispatchBehindBytes());
        line.put("minPhyOffset", messageStore.getMinPhyOffset());
        line.put("maxPhyOffset", messageStore.getMaxPhyOffset());
        consumer = client(new DefaultMQPullConsumer("storeReadings"), "pull");
        consumer.start();
        awaitRoute();
        List<Object> queues = new ArrayList<>();
        List<Object> messages = new ArrayList<>();
        Map<MessageQueue, Long> positions = new LinkedHashMap<>();
        Map<String, Integer> counts = new HashMap<>();
        for (MessageQueue queue : queues()) {
            Map<String, Object> row = new LinkedHashMap<>();
            row.put("topic", queue.getTopic());
            row.put("queue", queue.getQueueId());
            row.put("min", messageStore.getMinOffsetInQueue(queue.getTopic(), queue.getQueueId()));
            row.put("max", messageStore.getMaxOffsetInQueue(queue.getTopic(), queue.getQueueId()));
            queues.add(row);
            positions.put(queue, pull(queue, 0, row, messages, counts));
        }
        JSONObject awaited = command.getJSONObject("await");
        if (awaited != null) {
            until = System.currentTimeMillis() + intOption("awaitMs", 10_000);
            while (!isComplete(awaited, counts) && System.currentTimeMillis() < until) {
                Thread.sleep(200);
                for (MessageQueue queue : positions.keySet()) {
                    if (awaited.containsKey(queue.getTopic())) {
                        positions.put(queue, pull(queue, positions.get(queue), new HashMap<>(), messages, counts));
                    }
                }
            }
        }
        line.put("queues", queues);
        line.put("messages", messages);
        answers();
        groups();
        commit();
    }

    private static boolean isComplete(JSONObject awaited, Map<String, Integer> counts) {
        return awaited.keySet().stream().allMatch(topic -> counts.getOrDefault(topic, 0) >= awaited.getIntValue(topic));
    }

    /**
     * A broker of a DLedger group or behind a controller becomes the master some time after its start, and registers then. Any other registers as it
     * starts, but in 5.x often before it has looked for the name server, and for the second time 10 s later: do not wait for that.
     */
    private void awaitRoute() throws Exception {
        boolean registersLater = "true".equals(properties.get("enableDLegerCommitLog")) || "true".equals(properties.get("enableControllerMode"));
        for (int i = 1; i <= 400; i++) {
            for (String topic : broker.getTopicConfigManager().getTopicConfigTable().keySet()) {
                try {
                    if (!consumer.fetchSubscribeMessageQueues(topic).isEmpty()) {
                        return;
                    }
                } catch (Exception e) {
                    // not yet, or a topic without queues to read
                }
            }
            Thread.sleep(50);
            if (i % 4 == 0 && !registersLater) {
                broker.registerBrokerAll(true, false, true);
            }
        }
        throw new IllegalStateException("the name server has no route to a topic of the broker");
    }

    /** Every queue that the topic table or the store's queues name. */
    private List<MessageQueue> queues() throws Exception {
        TreeSet<MessageQueue> all = new TreeSet<>();
        broker.getTopicConfigManager().getTopicConfigTable().forEach((topic, config) -> {
            for (int queue = 0; queue < ((TopicConfig) config).getReadQueueNums(); queue++) {
                all.add(new MessageQueue(topic, brokerName, queue));
            }
        });
        for (String tree : List.of("consumequeue", "batchconsumequeue")) {
            for (Path topic : list(store.resolve(tree))) {
                for (Path queue : list(topic)) {
                    if (queue.getFileName().toString().matches("\\d{1,9}")) {
                        all.add(new MessageQueue(topic.getFileName().toString(), brokerName, Integer.parseInt(queue.getFileName().toString())));
                    }
                }
            }
        }
        JSONArray topics = command.getJSONArray("topics");
        List<MessageQueue> wanted = new ArrayList<>(all);
        wanted.removeIf(queue -> topics != null && !topics.contains(queue.getTopic()));
        // no name server has a route to a light queue: a client knows its broker from another topic
        wanted.sort(Comparator.comparing(queue -> queue.getTopic().startsWith(MixAll.LMQ_PREFIX)));
        return wanted;
    }

    private static List<Path> list(Path folder) throws Exception {
        if (!Files.isDirectory(folder)) {
            return List.of();
        }
        try (var files = Files.list(folder)) {
            return files.sorted().toList();
        }
    }

    /** Reads a queue to its end; returns the next offset. {@code moves} are the broker's corrections, [from, to]. */
    private long pull(MessageQueue queue, long start, Map<String, Object> row, List<Object> messages, Map<String, Integer> counts) {
        long offset = start;
        List<Object> moves = new ArrayList<>();
        try {
            for (int idle = 0; idle < 3;) {
                PullResult result = consumer.pull(queue, "*", offset, PULL_BATCH);
                if (result.getPullStatus() == PullStatus.FOUND) {
                    result.getMsgFoundList().forEach(message -> messages.add(fields(queue, message)));
                    counts.merge(queue.getTopic(), result.getMsgFoundList().size(), Integer::sum);
                } else if (result.getNextBeginOffset() != offset) {
                    moves.add(List.of(offset, result.getNextBeginOffset()));
                } else {
                    break;
                }
                idle = result.getNextBeginOffset() > offset ? 0 : idle + 1;
                offset = result.getNextBeginOffset();
            }
        } catch (Exception e) {
            row.put("error", e.getClass().getSimpleName() + ": " + Clients.firstLine(e));
        }
        if (!moves.isEmpty()) {
            row.put("moves", moves);
        }
        return offset;
    }

    /** Topic, queue and queue offset; offset and size in the log; digest of the body; properties if they are asked for. */
    private List<Object> fields(MessageQueue queue, MessageExt message) {
        List<Object> row = new ArrayList<>(List.of(queue.getTopic(), queue.getQueueId(), message.getQueueOffset(),
            message.getCommitLogOffset(), message.getStoreSize(), digest(message)));
        if (command.getBooleanValue("properties")) {
            row.add(new TreeMap<>(message.getProperties()));
        }
        return row;
    }

    private static String digest(MessageExt message) {
        return message.getBody() == null ? "" : Truth.sha256(message.getBody()).substring(0, 16);
    }

    /** [topic, key, [offset in the log, ...]] or [topic, key, error]. */
    private void answers() {
        JSONArray keys = command.getJSONArray("keys");
        if (keys == null) {
            return;
        }
        List<Object> answers = new ArrayList<>();
        for (int i = 0; i < keys.size(); i++) {
            String topic = keys.getJSONArray(i).getString(0), key = keys.getJSONArray(i).getString(1);
            Object answer;
            try {
                List<Object> offsets = new ArrayList<>();
                consumer.queryMessage(topic, key, MAX_MESSAGES_OF_KEY, 0, Long.MAX_VALUE).getMessageList().forEach(message -> offsets.add(message.getCommitLogOffset()));
                answer = offsets;
            } catch (Exception e) {
                answer = e.getClass().getSimpleName() + ": " + Clients.firstLine(e);
            }
            answers.add(List.of(topic, key, answer));
        }
        line.put("answers", answers);
    }

    /** Each group's real consumer, until it has come to the end of its queues, or is quiet. */
    private void groups() throws Exception {
        JSONObject groups = command.getJSONObject("groups");
        if (groups == null) {
            return;
        }
        Map<String, Object> received = new LinkedHashMap<>();
        for (String group : groups.keySet()) {
            received.put(group, receive(group, groups.getJSONArray(group)));
        }
        line.put("groups", received);
    }

    private List<Object> receive(String group, JSONArray topics) throws Exception {
        Queue<Object> rows = new ConcurrentLinkedQueue<>();
        Map<MessageQueue, Long> ends = new HashMap<>();
        DefaultMQPushConsumer member = client(new DefaultMQPushConsumer(group), group);
        member.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        member.setConsumeThreadMin(1);
        member.setConsumeThreadMax(1);
        long[] newest = {System.currentTimeMillis()};
        member.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt message : messages) {
                rows.add(fields(context.getMessageQueue(), message));
                synchronized (ends) {
                    if (message.getQueueOffset() + 1 >= ends.getOrDefault(context.getMessageQueue(), Long.MAX_VALUE)) {
                        ends.remove(context.getMessageQueue());
                    }
                }
            }
            newest[0] = System.currentTimeMillis();
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        int quietMs = GROUP_QUIET_MS;
        for (Object topic : topics) {
            for (MessageQueue queue : consumer.fetchSubscribeMessageQueues((String) topic)) {
                long start = broker.getMessageStore().getMinOffsetInQueue(queue.getTopic(), queue.getQueueId());
                long end = broker.getMessageStore().getMaxOffsetInQueue(queue.getTopic(), queue.getQueueId());
                long offset = broker.getConsumerOffsetManager().queryOffset(group, queue.getTopic(), queue.getQueueId());
                if (offset < end && end > 0 || offset > end) {
                    ends.put(queue, end);
                }
                if (offset >= 0 && (offset < start || offset > end)) {
                    quietMs = CORRECTION_QUIET_MS;
                }
            }
            member.subscribe((String) topic, "*");
        }
        member.start();
        while (System.currentTimeMillis() - newest[0] < quietMs) {
            synchronized (ends) {
                if (ends.isEmpty()) {
                    break;
                }
            }
            Thread.sleep(20);
        }
        member.shutdown();
        return new ArrayList<>(rows);
    }

    /** The broker keeps what a client commits, and writes it as it shuts down. */
    private void commit() throws Exception {
        JSONObject groups = command.getJSONObject("commit");
        if (groups == null) {
            return;
        }
        for (String group : groups.keySet()) {
            DefaultMQPullConsumer member = client(new DefaultMQPullConsumer(group), "commit" + group);
            member.start();
            for (String topic : groups.getJSONObject(group).keySet()) {
                JSONObject offsets = groups.getJSONObject(group).getJSONObject(topic);
                for (String queue : offsets.keySet()) {
                    MessageQueue place = new MessageQueue(topic, brokerName, Integer.parseInt(queue));
                    member.fetchSubscribeMessageQueues(topic);
                    member.pull(place, "*", 0, 1); // since 5.5 a broker takes no offset of a group that it does not know
                    member.getDefaultMQPullConsumerImpl().getOffsetStore().updateConsumeOffsetToBroker(place, offsets.getLongValue(queue), false);
                }
            }
            member.shutdown();
        }
    }
}
