package traffic;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.stream.Collectors;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMachineRoomNearby;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragelyByCircle;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByConfig;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByMachineRoom;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueConsistentHash;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * What each allocation strategy gives: lines of "strategy TAB own id TAB ids TAB queues TAB argument" in, lists joined by commas, a queue
 * as topic/broker/id; the client's queues in the same form out, or "! " and why not. A room is what stands before the first @.
 */
public class Allocations {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, "UTF-8");
        System.setOut(System.err); // where the client's log begins with words of its own
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] word = line.split("\t", -1);
            try {
                List<MessageQueue> given = strategy(word[0], word[4]).allocate("G", word[1], queues(word[3]), texts(word[2]));
                out.println(given.stream().map(q -> q.getTopic() + "/" + q.getBrokerName() + "/" + q.getQueueId()).collect(Collectors.joining(",")));
            } catch (IllegalArgumentException e) {
                out.println("! " + e.getMessage());
            }
        }
        out.flush();
        System.exit(0);
    }

    static AllocateMessageQueueStrategy strategy(String name, String argument) {
        switch (name) {
            case "AVG":
                return new AllocateMessageQueueAveragely();
            case "AVG_BY_CIRCLE":
                return new AllocateMessageQueueAveragelyByCircle();
            case "CONFIG":
                AllocateMessageQueueByConfig config = new AllocateMessageQueueByConfig();
                config.setMessageQueueList(queues(argument));
                return config;
            case "MACHINE_ROOM":
                AllocateMessageQueueByMachineRoom rooms = new AllocateMessageQueueByMachineRoom();
                rooms.setConsumeridcs(new HashSet<>(texts(argument)));
                return rooms;
            case "CONSISTENT_HASH":
                return new AllocateMessageQueueConsistentHash(Integer.parseInt(argument));
            default:
                if (!name.startsWith("MACHINE_ROOM_NEARBY-")) {
                    throw new IllegalStateException(name);
                }
                return new AllocateMachineRoomNearby(strategy(name.substring(20), argument), new AllocateMachineRoomNearby.MachineRoomResolver() {
                    @Override
                    public String brokerDeployIn(MessageQueue queue) {
                        return room(queue.getBrokerName());
                    }

                    @Override
                    public String consumerDeployIn(String clientId) {
                        return room(clientId);
                    }
                });
        }
    }

    static String room(String name) {
        int at = name.indexOf('@');
        return at < 0 ? "" : name.substring(0, at);
    }

    static List<String> texts(String joined) {
        return joined.isEmpty() ? new ArrayList<>() : Arrays.asList(joined.split(","));
    }

    static List<MessageQueue> queues(String joined) {
        List<MessageQueue> found = new ArrayList<>();
        for (String one : texts(joined)) {
            String[] part = one.split("/");
            found.add(new MessageQueue(part[0], part[1], Integer.parseInt(part[2])));
        }
        return found;
    }
}
