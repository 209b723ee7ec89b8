package traffic;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** How fast a broker answers the Java client: one JSON line a figure. The first part of each run warms both sides. */
public class Speed {
    static final int SIZE = 1024;
    static String namesrv;

    public static void main(String[] args) throws Exception {
        namesrv = args[0];
        String what = args[1];
        double seconds = Double.parseDouble(args[2]);
        DefaultMQProducer producer = new DefaultMQProducer("speed-producers");
        producer.setNamesrvAddr(namesrv);
        producer.setDefaultTopicQueueNums(8);
        producer.setSendMsgTimeout(10_000);
        producer.start();
        String topic = "Speed" + System.nanoTime();
        producer.send(new Message(topic, "warm", new byte[SIZE]));
        Thread.sleep(1000);
        switch (what) {
            case "send":
                for (String threads : args[3].split(",")) {
                    int many = Integer.parseInt(threads);
                    rate(producer, topic, many, 1, seconds / 2);
                    say(what, many, rate(producer, topic, many, 1, seconds));
                }
                break;
            case "batch":
                rate(producer, topic, 8, 64, seconds / 2);
                say(what, 8, rate(producer, topic, 8, 64, seconds));
                break;
            case "pull":
            case "push":
                int count = Integer.parseInt(args[3]);
                fill(producer, topic, count);
                for (int turn = 0; turn < 3; turn++) {
                    say(what, turn, what.equals("pull") ? pulled(topic, count) : pushed(topic, count, turn));
                }
                break;
            case "latency":
                latency(producer, topic, Integer.parseInt(args[3]));
                break;
            default:
                throw new IllegalArgumentException(what);
        }
        producer.shutdown();
        System.exit(0);
    }

    static void say(String what, int number, double rate) {
        System.out.println(String.format(Locale.ROOT, "{\"what\":\"%s\",\"number\":%d,\"rate\":%.1f}", what, number, rate));
    }

    static double rate(DefaultMQProducer producer, String topic, int threads, int batch, double seconds) throws Exception {
        AtomicLong sent = new AtomicLong();
        long end = System.nanoTime() + (long) (seconds * 1e9);
        Thread[] all = new Thread[threads];
        long began = System.nanoTime();
        for (int i = 0; i < threads; i++) {
            all[i] = new Thread(() -> {
                byte[] body = new byte[SIZE];
                try {
                    while (System.nanoTime() < end) {
                        if (batch == 1) {
                            producer.send(new Message(topic, "tag", body));
                        } else {
                            List<Message> some = new ArrayList<>(batch);
                            for (int n = 0; n < batch; n++) {
                                some.add(new Message(topic, "tag", body));
                            }
                            producer.send(some);
                        }
                        sent.addAndGet(batch);
                    }
                } catch (Exception e) {
                    System.err.println(e);
                }
            });
            all[i].start();
        }
        for (Thread one : all) {
            one.join();
        }
        return sent.get() / ((System.nanoTime() - began) / 1e9);
    }

    static void fill(DefaultMQProducer producer, String topic, int count) throws Exception {
        for (int done = 0; done < count; done += 50) {
            List<Message> some = new ArrayList<>();
            for (int n = 0; n < 50; n++) {
                some.add(new Message(topic, "tag", new byte[SIZE]));
            }
            producer.send(some);
        }
        Thread.sleep(2000);
    }

    static double pulled(String topic, int count) throws Exception {
        DefaultMQPullConsumer consumer = new DefaultMQPullConsumer("speed-pullers");
        consumer.setNamesrvAddr(namesrv);
        consumer.start();
        long began = System.nanoTime();
        long found = 0;
        for (MessageQueue queue : consumer.fetchSubscribeMessageQueues(topic)) {
            long at = 0;
            while (true) {
                PullResult result = consumer.pull(queue, "*", at, 32);
                if (result.getPullStatus() != PullStatus.FOUND) {
                    break;
                }
                found += result.getMsgFoundList().size();
                at = result.getNextBeginOffset();
            }
        }
        double rate = found / ((System.nanoTime() - began) / 1e9);
        consumer.shutdown();
        if (found < count) {
            throw new IllegalStateException(found + " of " + count);
        }
        return rate;
    }

    static double pushed(String topic, int count, int turn) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer("speed-pushed-" + turn + "-" + topic);
        consumer.setNamesrvAddr(namesrv);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, "*");
        AtomicInteger seen = new AtomicInteger();
        AtomicLong first = new AtomicLong();
        CountDownLatch all = new CountDownLatch(1);
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            first.compareAndSet(0, System.nanoTime());
            if (seen.addAndGet(messages.size()) >= count) {
                all.countDown();
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        all.await();
        double rate = seen.get() / ((System.nanoTime() - first.get()) / 1e9);
        consumer.shutdown();
        return rate;
    }

    static void latency(DefaultMQProducer producer, String topic, int count) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer("speed-latency-" + topic);
        consumer.setNamesrvAddr(namesrv);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET);
        consumer.subscribe(topic, "at");
        List<Long> took = new ArrayList<>();
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            long now = System.nanoTime();
            synchronized (took) {
                for (MessageExt one : messages) {
                    took.add(now - Long.parseLong(one.getUserProperty("sent")));
                }
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        Thread.sleep(3000);
        for (int n = 0; n < count; n++) {
            Message one = new Message(topic, "at", new byte[SIZE]);
            one.putUserProperty("sent", Long.toString(System.nanoTime()));
            producer.send(one);
            Thread.sleep(5);
        }
        Thread.sleep(2000);
        consumer.shutdown();
        long[] sorted;
        synchronized (took) {
            sorted = took.subList(took.size() / 4, took.size()).stream().mapToLong(Long::longValue).sorted().toArray();
        }
        System.out.println(String.format(Locale.ROOT, "{\"what\":\"latency\",\"count\":%d,\"p50\":%.3f,\"p99\":%.3f}",
            sorted.length, sorted[sorted.length / 2] / 1e6, sorted[sorted.length * 99 / 100] / 1e6));
    }
}
