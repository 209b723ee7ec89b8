package traffic;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.ReadWriteLock;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.impl.consumer.ProcessQueue;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.exception.RemotingConnectException;

/**
 * Java clients of a broker that fails: each prints one JSON line for each event, until the input ends.
 * {@code NAMESRV TOPIC senders QUEUES BATCHED PAUSE}: a thread a queue, which sends its messages in turn, each until it is acknowledged; those of
 * queue BATCHED three at a time. {@code NAMESRV TOPIC readers CONCURRENT ORDERLY}: a consumer of each of both groups.
 * {@code at} is the machine's monotonic clock in nanoseconds, the same for every process.
 */
public class Counted {
    static final int BATCH = 3;
    static final java.io.PrintStream OUT = System.out;
    static volatile boolean going = true;

    public static void main(String[] args) throws Exception {
        System.setOut(System.err); // where the client's log begins with words of its own
        Runnable end = args[2].equals("senders") ? send(args) : read(args);
        say("started");
        while (System.in.read() >= 0) {
            continue;
        }
        going = false;
        end.run();
        say("ended");
        System.exit(0);
    }

    static <C extends ClientConfig> C quick(C client, String namesrv) {
        client.setNamesrvAddr(namesrv);
        client.setClientIP("127.0.0.1");
        client.setVipChannelEnabled(false);
        client.setPollNameServerInterval(1000);
        client.setHeartbeatBrokerInterval(1000);
        client.setPersistConsumerOffsetInterval(500);
        return client;
    }

    // Senders

    static Runnable send(String[] args) throws Exception {
        DefaultMQProducer producer = quick(new DefaultMQProducer("senders"), args[0]);
        producer.setSendMsgTimeout(2000);
        producer.start();
        List<Thread> all = new ArrayList<>();
        for (int queue = 0; queue < Integer.parseInt(args[3]); queue++) {
            MessageQueue to = new MessageQueue(args[1], "broker-a", queue);
            int size = queue == Integer.parseInt(args[4]) ? BATCH : 1;
            Thread one = new Thread(() -> sendInTurn(producer, to, size, Long.parseLong(args[5])));
            one.start();
            all.add(one);
        }
        return () -> {
            try {
                for (Thread one : all) {
                    one.join();
                }
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
            producer.shutdown();
        };
    }

    static void sendInTurn(DefaultMQProducer producer, MessageQueue to, int size, long pause) {
        for (int first = 0; going; first += size) {
            List<Message> some = new ArrayList<>();
            for (int number = first; number < first + size; number++) {
                some.add(new Message(to.getTopic(), body(to.getQueueId(), number)));
            }
            while (!isAcknowledged(producer, to, first, some)) {
                rest(20);
            }
            rest(pause);
        }
    }

    /** Tries once. What failed before anything went out is not recorded: nothing can be stored by it. */
    static boolean isAcknowledged(DefaultMQProducer producer, MessageQueue to, int first, List<Message> some) {
        Object[] what = {"queue", to.getQueueId(), "first", first, "count", some.size()};
        try {
            SendResult result = some.size() == 1 ? producer.send(some.get(0), to) : producer.send(some, to);
            say("acknowledged", with(what, "status", result.getSendStatus(), "offset", result.getQueueOffset()));
            return true;
        } catch (MQBrokerException e) {
            say("refused", with(what, "code", e.getResponseCode(), "remark", e.getErrorMessage()));
        } catch (RemotingConnectException e) {
            // nobody listened
        } catch (MQClientException e) {
            if (e.getCause() != null) {
                say("unanswered", with(what, "error", String.valueOf(e)));
            }
        } catch (Exception e) {
            say("unanswered", with(what, "error", String.valueOf(e)));
        }
        return false;
    }

    /** Its queue, its number, and zeros: of one length or another. */
    static byte[] body(int queue, int number) {
        byte[] words = (queue + " " + number + " ").getBytes(StandardCharsets.US_ASCII);
        return Arrays.copyOf(words, words.length + (int) (number * 37L % 300));
    }

    static void rest(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    // Readers

    static Runnable read(String[] args) throws Exception {
        DefaultMQPushConsumer concurrent = consumer(args[0], args[1], args[3]);
        concurrent.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            messages.forEach(one -> received(concurrent, args[3], context.getMessageQueue(), one, false));
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        DefaultMQPushConsumer orderly = consumer(args[0], args[1], args[4]);
        orderly.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
            messages.forEach(one -> received(orderly, args[4], context.getMessageQueue(), one, true));
            return ConsumeOrderlyStatus.SUCCESS;
        });
        concurrent.start();
        orderly.start();
        return () -> {
            concurrent.shutdown();
            orderly.shutdown();
        };
    }

    static DefaultMQPushConsumer consumer(String namesrv, String topic, String group) throws Exception {
        DefaultMQPushConsumer made = quick(new DefaultMQPushConsumer(group), namesrv);
        made.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        made.setConsumeThreadMin(4);
        made.setConsumeThreadMax(4);
        made.setConsumeMessageBatchMaxSize(1);
        made.subscribe(topic, "*");
        return made;
    }

    static void received(DefaultMQPushConsumer consumer, String group, MessageQueue queue, MessageExt one, boolean orderly) {
        long at = System.nanoTime();
        String[] words = new String(one.getBody(), StandardCharsets.ISO_8859_1).split(" ", 3);
        say("received", "group", group, "reading", reading(consumer, queue, one, orderly), "queue", queue.getQueueId(), "offset", one.getQueueOffset(),
            "of", Integer.valueOf(words[0]), "number", Integer.valueOf(words[1]), "again", one.getReconsumeTimes(), "at", at);
    }

    /**
     * Which reading of the queue handed it out; −1: one that was over, its last message was on its way. The queue that stands in the table may be
     * the next one already, so it must hold this very message (in order it is held by the queue's lock while it is consumed).
     */
    static int reading(DefaultMQPushConsumer consumer, MessageQueue queue, MessageExt one, boolean orderly) {
        ProcessQueue held = consumer.getDefaultMQPushConsumerImpl().getRebalanceImpl().getProcessQueueTable().get(queue);
        if (held == null || !orderly && !holds(held, one)) {
            return -1;
        }
        return READINGS.computeIfAbsent(held, key -> COUNT.incrementAndGet());
    }

    private static final Map<ProcessQueue, Integer> READINGS = new ConcurrentHashMap<>();
    private static final AtomicInteger COUNT = new AtomicInteger();

    static boolean holds(ProcessQueue held, MessageExt one) {
        try {
            ReadWriteLock lock = (ReadWriteLock) Cluster.field(held, "treeMapLock");
            lock.readLock().lock();
            try {
                return held.getMsgTreeMap().get(one.getQueueOffset()) == one;
            } finally {
                lock.readLock().unlock();
            }
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    static Object[] with(Object[] what, Object... more) {
        Object[] all = Arrays.copyOf(what, what.length + more.length);
        System.arraycopy(more, 0, all, what.length, more.length);
        return all;
    }

    static void say(String kind, Object... pairs) {
        Map<String, Object> record = new java.util.LinkedHashMap<>();
        record.put("kind", kind);
        for (int i = 0; i < pairs.length; i += 2) {
            record.put((String) pairs[i], pairs[i + 1]);
        }
        record.putIfAbsent("at", System.nanoTime());
        String line = Truth.text(record);
        synchronized (OUT) {
            OUT.println(line);
            OUT.flush();
        }
    }
}
