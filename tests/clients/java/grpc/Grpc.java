import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.apis.ClientConfiguration;
import org.apache.rocketmq.client.apis.ClientServiceProvider;
import org.apache.rocketmq.client.apis.consumer.ConsumeResult;
import org.apache.rocketmq.client.apis.consumer.FilterExpression;
import org.apache.rocketmq.client.apis.consumer.FilterExpressionType;
import org.apache.rocketmq.client.apis.consumer.PushConsumer;
import org.apache.rocketmq.client.apis.consumer.SimpleConsumer;
import org.apache.rocketmq.client.apis.message.Message;
import org.apache.rocketmq.client.apis.message.MessageBuilder;
import org.apache.rocketmq.client.apis.message.MessageView;
import org.apache.rocketmq.client.apis.producer.Producer;
import org.apache.rocketmq.client.apis.producer.Transaction;
import org.apache.rocketmq.client.apis.producer.TransactionResolution;

/** The gRPC client of RocketMQ against a proxy; one line on standard output for each message that it is given. */
public final class Grpc {
    private static final ClientServiceProvider PROVIDER = ClientServiceProvider.loadService();
    private static ClientConfiguration configuration;

    public static void main(String[] args) throws Exception {
        configuration = ClientConfiguration.newBuilder().setEndpoints(args[0]).setRequestTimeout(Duration.ofSeconds(10)).build();
        simple();
        fifo();
        delayed();
        transactions();
        pushed();
        System.exit(0);
    }

    private static MessageBuilder message(String topic, String body) {
        return PROVIDER.newMessageBuilder().setTopic(topic).setBody(body.getBytes(StandardCharsets.UTF_8));
    }

    private static String body(MessageView view) {
        return StandardCharsets.UTF_8.decode(view.getBody()).toString();
    }

    private static synchronized void printMessage(String event, MessageView view) {
        System.out.println(event + " " + body(view) + " " + view.getDeliveryAttempt());
    }

    private static Producer producer(String topic) throws Exception {
        return PROVIDER.newProducerBuilder().setClientConfiguration(configuration).setTopics(topic).build();
    }

    private static SimpleConsumer consumer(String group, String topic, FilterExpression wanted) throws Exception {
        return PROVIDER.newSimpleConsumerBuilder().setClientConfiguration(configuration).setConsumerGroup(group)
            .setAwaitDuration(Duration.ofSeconds(5)).setSubscriptionExpressions(Map.of(topic, wanted)).build();
    }

    /** Messages until so many came, or a minute has passed. */
    private static List<MessageView> receive(SimpleConsumer consumer, int count) throws Exception {
        List<MessageView> found = new ArrayList<>();
        long until = System.currentTimeMillis() + 60_000;
        while (found.size() < count && System.currentTimeMillis() < until) {
            found.addAll(consumer.receive(16, Duration.ofSeconds(10)));
        }
        return found;
    }

    /** Some acknowledged, one made invisible for longer, one forgotten: those two come again. */
    private static void simple() throws Exception {
        try (Producer producer = producer("Normal"); SimpleConsumer consumer = consumer("simple", "Normal", FilterExpression.SUB_ALL);
             SimpleConsumer paid = consumer("filtered", "Normal", new FilterExpression("paid", FilterExpressionType.TAG))) {
            for (int i = 0; i < 5; i++) {
                producer.send(message("Normal", "n" + i).setTag(i == 3 ? "paid" : "sent").setKeys("k" + i).build());
            }
            for (MessageView view : receive(consumer, 5)) {
                printMessage("simple", view);
                switch (body(view)) {
                    case "n1" -> consumer.changeInvisibleDuration(view, Duration.ofSeconds(12));
                    case "n2" -> { }
                    default -> consumer.ack(view);
                }
            }
            for (MessageView view : receive(consumer, 2)) {
                printMessage("again", view);
                consumer.ack(view);
            }
            for (MessageView view : receive(paid, 1)) {
                printMessage("filtered", view);
                paid.ack(view);
            }
        }
    }

    /** Two message groups, each in its order. */
    private static void fifo() throws Exception {
        try (Producer producer = producer("Fifo"); SimpleConsumer consumer = consumer("ordered", "Fifo", FilterExpression.SUB_ALL)) {
            for (int i = 0; i < 6; i++) {
                producer.send(message("Fifo", "f" + i).setMessageGroup("group-" + i % 2).build());
            }
            Map<String, MessageView> seen = Collections.synchronizedMap(new TreeMap<>());
            long until = System.currentTimeMillis() + 60_000;
            while (seen.size() < 6 && System.currentTimeMillis() < until) {
                for (MessageView view : consumer.receive(1, Duration.ofSeconds(10))) {
                    printMessage("fifo", view);
                    seen.put(body(view), view);
                    consumer.ack(view);
                }
            }
        }
    }

    private static void delayed() throws Exception {
        try (Producer producer = producer("Delay"); SimpleConsumer consumer = consumer("waiting", "Delay", FilterExpression.SUB_ALL)) {
            long due = System.currentTimeMillis() + 4_000;
            producer.send(message("Delay", "d0").setDeliveryTimestamp(due).build());
            for (MessageView view : receive(consumer, 1)) {
                printMessage(System.currentTimeMillis() >= due - 1_000 ? "delayed" : "early", view);
                consumer.ack(view);
            }
        }
    }

    /** One committed, one rolled back, one that the broker asks about. */
    private static void transactions() throws Exception {
        try (Producer producer = PROVIDER.newProducerBuilder().setClientConfiguration(configuration).setTopics("Transactional")
                .setTransactionChecker(view -> TransactionResolution.COMMIT).build();
             SimpleConsumer consumer = consumer("decided", "Transactional", FilterExpression.SUB_ALL)) {
            for (int i = 0; i < 3; i++) {
                Transaction transaction = producer.beginTransaction();
                producer.send(message("Transactional", "t" + i).build(), transaction);
                if (i == 0) {
                    transaction.commit();
                } else if (i == 1) {
                    transaction.rollback();
                }
            }
            for (int count = 0; count < 2; count++) { // the second one after the broker has asked: half a minute later
                for (MessageView view : receive(consumer, 1)) {
                    printMessage("decided", view);
                    consumer.ack(view);
                }
            }
        }
    }

    /** A listener that fails: at its third attempt, its last, a message is a dead letter. */
    private static void pushed() throws Exception {
        CountDownLatch latch = new CountDownLatch(6);
        try (Producer producer = producer("Pushed");
             PushConsumer ignored = PROVIDER.newPushConsumerBuilder().setClientConfiguration(configuration).setConsumerGroup("pushed")
                .setSubscriptionExpressions(Map.of("Pushed", FilterExpression.SUB_ALL)).setMessageListener(view -> {
                    printMessage("pushed", view);
                    latch.countDown();
                    return body(view).equals("p0") || (body(view).equals("p1") && view.getDeliveryAttempt() == 1) ? ConsumeResult.FAILURE : ConsumeResult.SUCCESS;
                }).build()) {
            for (int i = 0; i < 3; i++) {
                producer.send(message("Pushed", "p" + i).build());
            }
            latch.await(120, TimeUnit.SECONDS);
            Thread.sleep(8_000); // for the dead letter, and for one too many
        }
    }
}
