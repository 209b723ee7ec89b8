package samples;

import java.lang.reflect.Field;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.compression.CompressionType;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageClientIDSetter;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * {@code day STORE SCRATCH} makes the store of an ordinary day and closes it cleanly; {@code crash STORE SCRATCH} opens it
 * again, sends on and ends without closing anything.
 */
public final class Main {
    private static final int ROUNDS = 120;
    private static final long ROUND_MS = 600;

    private final Producers producers;
    private final Shop shop;

    private Main(Shop shop) throws Exception {
        this.shop = shop;
        this.producers = new Producers();
    }

    public static void main(String[] arguments) {
        try {
            run(arguments);
            System.exit(0);
        } catch (Exception failed) {
            failed.printStackTrace();
            System.exit(1); // the broker's threads would live on
        }
    }

    /** Unique keys begin with the sender's address; the samples shall not tell that of the machine they were made on. */
    private static void nameLoopbackInUniqueKeys() throws Exception {
        Field prefix = MessageClientIDSetter.class.getDeclaredField("FIX_STRING");
        prefix.setAccessible(true);
        "7F000001".getChars(0, 8, (char[]) prefix.get(null), 0);
    }

    private static void run(String[] arguments) throws Exception {
        nameLoopbackInUniqueKeys();
        Cluster cluster = new Cluster(Path.of(arguments[1]), Path.of(arguments[2]));
        Map<String, Integer> queues = new LinkedHashMap<>();
        queues.put(Shop.PAID, 4);
        queues.put(Shop.STOCK, 4);
        queues.put(Shop.SHIPMENT, 2);
        queues.put(Shop.CLICKS, 4);
        queues.put(Shop.INVOICE, 2);
        queues.put(Shop.REMINDER, 1);
        queues.put(Shop.SETTLED, 1);
        boolean crash = arguments[0].equals("crash");
        if (!crash) {
            cluster.createTopics(queues, Shop.CLICK_BATCHES);
        }
        cluster.awaitRoutes(queues.keySet());
        cluster.awaitRoutes(List.of(Shop.CLICK_BATCHES));
        if (crash) {
            new Main(new Shop(2, 9000)).crash();
        }
        new Main(new Shop(1, 0)).day();
        cluster.close();
    }

    private void day() throws Exception {
        Consumers consumers = new Consumers();
        consumers.billing();
        consumers.notifier();
        consumers.ledger();
        DefaultMQPushConsumer warehouse = consumers.warehouse();
        DefaultMQPushConsumer analytics = consumers.analytics();
        for (int round = 0; round < ROUNDS; round++) {
            round(round);
            if (round == ROUNDS / 2) {
                consumers.leave(analytics);
            }
            if (round == ROUNDS * 3 / 4) {
                consumers.leave(warehouse);
            }
            Thread.sleep(ROUND_MS);
        }
        Thread.sleep(15000); // retries come to their end
        consumers.leaveAll();
        for (int late = 0; late < 25; late++) {
            producers.plain.send(shop.paid(shop.nextOrder()));
        }
        producers.close();
    }

    private void round(int round) throws Exception {
        int orders = 5 + shop.number(8);
        for (int order = 0; order < orders; order++) {
            String id = shop.nextOrder();
            producers.plain.send(shop.paid(id));
            for (int line = 0; line <= shop.number(2); line++) {
                producers.plain.send(shop.stock(id));
            }
            if (shop.number(3) > 0) {
                producers.plain.send(shop.shipment(id));
            }
            if (order == 0) {
                producers.compressing(round).send(shop.invoice(id));
            }
        }
        producers.plain.send(clicks(Shop.CLICKS, 8 + shop.number(10)));
        if (round % 8 == 3) {
            producers.plain.send(clicks(Shop.CLICK_BATCHES, 5 + shop.number(5)));
        }
        if (round % 10 == 4) {
            producers.plain.send(shop.reminder(shop.nextOrder(), round < 60 ? 2 : 18)); // five seconds; two hours
        }
        if (round % 7 == 5) {
            String outcome = List.of("commit", "commit", "rollback", "commit", "open").get(round / 7 % 5);
            producers.transactional.sendMessageInTransaction(shop.settled(shop.nextOrder(), outcome), outcome);
        }
    }

    private List<Message> clicks(String topic, int count) {
        List<Message> batch = new ArrayList<>();
        for (int click = 0; click < count; click++) {
            Message message = shop.click();
            message.setTopic(topic);
            batch.add(message);
        }
        return batch;
    }

    private void crash() throws Exception {
        for (int round = 0; round < 12; round++) {
            round(round);
        }
        Thread.sleep(1500);
        Runtime.getRuntime().halt(9);
    }

    /** The senders: one without compression, one for each kind of it, one with transactions. */
    private static final class Producers {
        final DefaultMQProducer plain = started(new DefaultMQProducer("shop"), "plain");
        final TransactionMQProducer transactional = transactional();
        private final List<DefaultMQProducer> compressing = List.of(
            compressing(CompressionType.ZLIB), compressing(CompressionType.LZ4), compressing(CompressionType.ZSTD));

        Producers() throws Exception {
        }

        DefaultMQProducer compressing(int turn) {
            return compressing.get(turn % compressing.size());
        }

        void close() {
            plain.shutdown();
            transactional.shutdown();
            compressing.forEach(DefaultMQProducer::shutdown);
        }

        private static DefaultMQProducer compressing(CompressionType type) throws Exception {
            DefaultMQProducer producer = new DefaultMQProducer("shop-" + type.name().toLowerCase());
            producer.setCompressType(type);
            producer.setCompressMsgBodyOverHowmuch(1024);
            return started(producer, type.name());
        }

        private static TransactionMQProducer transactional() throws Exception {
            TransactionMQProducer producer = new TransactionMQProducer("settlement");
            producer.setTransactionListener(new TransactionListener() {
                @Override
                public LocalTransactionState executeLocalTransaction(Message message, Object outcome) {
                    if (outcome.equals("open")) {
                        return LocalTransactionState.UNKNOW;
                    }
                    return outcome.equals("commit")
                        ? LocalTransactionState.COMMIT_MESSAGE : LocalTransactionState.ROLLBACK_MESSAGE;
                }

                @Override
                public LocalTransactionState checkLocalTransaction(MessageExt message) {
                    return LocalTransactionState.UNKNOW;
                }
            });
            return started(producer, "settlement");
        }

        private static <P extends DefaultMQProducer> P started(P producer, String name) throws Exception {
            producer.setNamesrvAddr(Cluster.address());
            producer.setClientIP(Cluster.LOOPBACK);
            producer.setInstanceName(name);
            producer.setVipChannelEnabled(false);
            producer.setSendMsgTimeout(10000);
            producer.start();
            return producer;
        }
    }
}
