import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.rocketmq.client.apis.ClientConfiguration;
import org.apache.rocketmq.client.apis.ClientServiceProvider;
import org.apache.rocketmq.client.apis.consumer.ConsumeResult;
import org.apache.rocketmq.client.apis.consumer.LitePushConsumer;
import org.apache.rocketmq.client.apis.consumer.OffsetOption;
import org.apache.rocketmq.client.apis.message.MessageView;
import org.apache.rocketmq.client.apis.producer.Producer;

/** The gRPC client's lite consumer against a proxy; for each step one line a message that came: consumer, lite topic, body, attempt. */
public final class Lite {
    private static final ClientServiceProvider PROVIDER = ClientServiceProvider.loadService();
    private static final String TOPIC = "Chat";
    private static ClientConfiguration configuration;
    private static final Set<String> refused = ConcurrentHashMap.newKeySet();
    private static final List<String> received = new CopyOnWriteArrayList<>();

    public static void main(String[] args) throws Exception {
        configuration = ClientConfiguration.newBuilder().setEndpoints(args[0]).setRequestTimeout(Duration.ofSeconds(10)).build();
        try (Producer producer = PROVIDER.newProducerBuilder().setClientConfiguration(configuration).setTopics(TOPIC).build();
             LitePushConsumer consumer = consumer("first", "chatters")) {
            for (int i = 0; i < 3; i++) {
                for (String lite : List.of("room-1", "room-2", "room-3")) {
                    send(producer, lite, lite + "-" + i);
                }
            }
            consumer.subscribeLite("room-1");
            consumer.subscribeLite("room-2");
            print("subscribed", 6, 0);
            send(producer, "room-1", "room-1-3");
            send(producer, "room-3", "room-3-3");
            print("later", 1, 2_000);
            send(producer, "room-2", "fail");
            print("failed", 2, 0);
            consumer.unsubscribeLite("room-1");
            send(producer, "room-1", "room-1-4");
            print("unsubscribed", 1, 4_000);
            try (LitePushConsumer late = consumer("late", "late-readers")) {
                late.subscribeLite("room-3", OffsetOption.MIN_OFFSET);
                print("late", 4, 0);
            }
        }
        System.exit(0);
    }

    private static void send(Producer producer, String lite, String body) throws Exception {
        producer.send(PROVIDER.newMessageBuilder().setTopic(TOPIC).setLiteTopic(lite).setBody(body.getBytes(StandardCharsets.UTF_8)).build());
    }

    private static LitePushConsumer consumer(String name, String group) throws Exception {
        return PROVIDER.newLitePushConsumerBuilder().setClientConfiguration(configuration).setConsumerGroup(group).bindTopic(TOPIC)
            .setMessageListener(view -> consume(name, view)).build();
    }

    /** A body "fail" is refused the first time. */
    private static ConsumeResult consume(String name, MessageView view) {
        String body = StandardCharsets.UTF_8.decode(view.getBody()).toString();
        received.add(name + " " + view.getLiteTopic().orElse("none") + " " + body + " " + view.getDeliveryAttempt());
        return body.equals("fail") && refused.add(body) ? ConsumeResult.FAILURE : ConsumeResult.SUCCESS;
    }

    /** Prints what came, once it is so many or three minutes have passed; with a pause, what comes in that time too, and nothing is waited for. */
    private static void print(String step, int count, long pauseMs) throws Exception {
        long until = System.currentTimeMillis() + (pauseMs > 0 ? pauseMs : 180_000);
        while (System.currentTimeMillis() < until && (pauseMs > 0 || received.size() < count)) {
            Thread.sleep(50);
        }
        List<String> lines = new ArrayList<>(received);
        received.clear();
        Collections.sort(lines);
        lines.forEach(line -> System.out.println(step + " " + line));
    }
}
