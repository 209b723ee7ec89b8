package samples;

import java.util.ArrayList;
import java.util.List;
import java.util.function.ToIntFunction;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;

/** The groups of the shop. */
final class Consumers {
    private static final int DONE = 0;
    private static final int AGAIN = 1;

    private final List<DefaultMQPushConsumer> running = new ArrayList<>();

    /** Reads everything of two topics. */
    DefaultMQPushConsumer billing() throws Exception {
        return start("billing", message -> DONE, Shop.PAID, "*", Shop.INVOICE, "*");
    }

    /** Wants some tags only. */
    DefaultMQPushConsumer warehouse() throws Exception {
        return start("warehouse", message -> DONE, Shop.STOCK, "*", Shop.PAID, "card || invoice");
    }

    /** Fails now and then: once for some (they come again), always for others (they end as dead letters). */
    DefaultMQPushConsumer notifier() throws Exception {
        return start("shipping-notifier", message -> {
            int hash = Math.floorMod(message.getKeys().hashCode(), 97);
            boolean always = hash < 2;
            boolean once = hash < 8 && message.getReconsumeTimes() == 0;
            return always || once ? AGAIN : DONE;
        }, Shop.SHIPMENT, "shipped || delivered");
    }

    DefaultMQPushConsumer analytics() throws Exception {
        return start("analytics", message -> DONE, Shop.CLICKS, "*");
    }

    DefaultMQPushConsumer ledger() throws Exception {
        return start("ledger", message -> DONE, Shop.SETTLED, "*", Shop.REMINDER, "*");
    }

    private DefaultMQPushConsumer start(String group, ToIntFunction<MessageExt> verdict, String... topicsAndTags) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group);
        consumer.setNamesrvAddr(Cluster.address());
        consumer.setClientIP(Cluster.LOOPBACK);
        consumer.setInstanceName(group);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setConsumeThreadMin(2);
        consumer.setConsumeThreadMax(2);
        consumer.setMaxReconsumeTimes(2);
        for (int at = 0; at < topicsAndTags.length; at += 2) {
            consumer.subscribe(topicsAndTags[at], topicsAndTags[at + 1]);
        }
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            context.setDelayLevelWhenNextConsume(1);
            boolean again = messages.stream().anyMatch(message -> verdict.applyAsInt(message) == AGAIN);
            return again ? ConsumeConcurrentlyStatus.RECONSUME_LATER : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        running.add(consumer);
        return consumer;
    }

    void leave(DefaultMQPushConsumer consumer) {
        consumer.shutdown();
        running.remove(consumer);
    }

    void leaveAll() {
        for (DefaultMQPushConsumer consumer : List.copyOf(running)) {
            leave(consumer);
        }
    }
}
