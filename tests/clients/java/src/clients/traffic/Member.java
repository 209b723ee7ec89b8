package traffic;

import java.util.Map;
import java.util.TreeSet;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.impl.consumer.RebalanceImpl;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * A Java member of a group: NAMESRV GROUP TOPIC [orderly | pop]. Says as JSON lines which queues it owns whenever they change, and each message that
 * it consumes; ends when its input does.
 */
public class Member {
    public static void main(String[] args) throws Exception {
        java.io.PrintStream out = System.out;
        System.setOut(System.err); // where the client's log begins with words of its own
        boolean orderly = args.length > 3 && args[3].equals("orderly");
        boolean pops = args.length > 3 && args[3].equals("pop");
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(args[1]);
        consumer.setNamesrvAddr(args[0]);
        consumer.setClientIP("127.0.0.1");
        consumer.setVipChannelEnabled(false);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setPersistConsumerOffsetInterval(1000);
        consumer.subscribe(args[2], "*");
        if (pops) { // brokers say what it pops; 4.9 has neither method
            DefaultMQPushConsumer.class.getMethod("setClientRebalance", boolean.class).invoke(consumer, false);
        }
        RebalanceImpl rebalance = consumer.getDefaultMQPushConsumerImpl().getRebalanceImpl();
        Map<?, ?> table = pops ? (Map<?, ?>) RebalanceImpl.class.getMethod("getPopProcessQueueTable").invoke(rebalance)
            : rebalance.getProcessQueueTable();
        if (orderly) {
            consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
                messages.forEach(one -> received(out, one));
                return ConsumeOrderlyStatus.SUCCESS;
            });
        } else {
            consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                messages.forEach(one -> received(out, one));
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
        }
        consumer.start();
        Thread watch = new Thread(() -> {
            String last = "";
            while (true) {
                TreeSet<Integer> owned = new TreeSet<>();
                for (Object key : table.keySet()) {
                    MessageQueue queue = (MessageQueue) key;
                    if (queue.getTopic().equals(args[2])) {
                        owned.add(queue.getQueueId());
                    }
                }
                if (!owned.toString().equals(last)) {
                    last = owned.toString();
                    say(out, "{\"kind\":\"owned\",\"queues\":" + last + "}");
                }
                try {
                    Thread.sleep(50);
                } catch (InterruptedException e) {
                    return;
                }
            }
        });
        watch.setDaemon(true);
        watch.start();
        while (System.in.read() >= 0) {
            continue;
        }
        consumer.shutdown();
        System.exit(0);
    }

    static void received(java.io.PrintStream out, MessageExt one) {
        Map<String, String> properties = one.getProperties();
        String keys = one.getKeys() == null ? "" : one.getKeys();
        say(out, "{\"kind\":\"received\",\"at\":" + System.currentTimeMillis() + ",\"queueId\":" + one.getQueueId() + ",\"queueOffset\":" + one.getQueueOffset() + ",\"msgId\":\"" + one.getMsgId()
            + "\",\"keys\":\"" + keys + "\",\"tags\":\"" + (one.getTags() == null ? "" : one.getTags()) + "\",\"reconsumeTimes\":" + one.getReconsumeTimes()
            + ",\"properties\":" + properties.size() + ",\"bodyLen\":" + one.getBody().length + ",\"bodySha256\":\"" + Truth.sha256(one.getBody()) + "\"}");
    }

    static synchronized void say(java.io.PrintStream out, String line) {
        out.println(line);
        out.flush();
    }
}
