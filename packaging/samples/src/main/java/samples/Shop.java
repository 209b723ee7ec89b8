package samples;

import java.nio.charset.StandardCharsets;
import java.util.Locale;
import java.util.Random;
import org.apache.rocketmq.common.message.Message;

/** What a small shop says in messages; everything but the times follows from the seed. */
final class Shop {
    static final String PAID = "OrderPaid";
    static final String STOCK = "StockReserved";
    static final String SHIPMENT = "ShipmentEvents";
    static final String CLICKS = "UserClicks";
    static final String INVOICE = "InvoiceCreated";
    static final String REMINDER = "PaymentReminders";
    static final String SETTLED = "PaymentSettled";
    static final String CLICK_BATCHES = "ClickBatches";

    /** Shelves of the warehouse, used as keys: the first four have one and the same Java hash. */
    static final String[] SHELVES = {"AaAa", "AaBB", "BBAa", "BBBB", "C-014", "C-015", "D-201", "D-202"};

    private static final String[] WAYS = {"card", "paypal", "invoice"};
    private static final String[] STEPS = {"picked", "packed", "shipped", "delivered"};
    private static final String[] CITIES = {"München", "上海", "Kraków", "São Paulo", "東京", "Reykjavík", "Athens", "İzmir"};
    private static final String[] NAMES = {"Zoë Müller", "李小龙", "Łukasz Nowak", "Ana Gonçalves", "佐藤 花子", "Jón Þórsson"};
    private static final String[] GOODS = {"tea-green-250", "mug-blue", "kettle-1l", "filter-40", "honey-500", "spoon-6"};
    private static final String[] PAGES = {"/", "/tea", "/tea/green", "/cart", "/checkout", "/account/orders"};

    private final Random random;
    private int orders;

    Shop(long seed, int firstOrder) {
        random = new Random(seed);
        orders = firstOrder;
    }

    String nextOrder() {
        return String.format(Locale.ROOT, "SO-%06d", ++orders);
    }

    int number(int bound) {
        return random.nextInt(bound);
    }

    Message paid(String order) {
        int items = 1 + number(3);
        StringBuilder body = new StringBuilder("{\"order\":\"" + order + "\",\"customer\":\"C-" + (1000 + number(400)) + "\",\"items\":[");
        int cents = 0;
        for (int item = 0; item < items; item++) {
            int price = 350 + 50 * number(90);
            cents += price;
            body.append(item == 0 ? "" : ",").append("{\"sku\":\"").append(pick(GOODS)).append("\",\"cents\":").append(price).append('}');
        }
        body.append("],\"cents\":").append(cents).append(",\"currency\":\"EUR\"}");
        Message message = message(PAID, pick(WAYS), order, body.toString());
        message.putUserProperty("amountCents", Integer.toString(cents));
        message.putUserProperty("region", number(4) == 0 ? "apac" : "eu");
        return message;
    }

    Message stock(String order) {
        String shelf = pick(SHELVES);
        boolean isShort = number(12) == 0;
        String body = "{\"order\":\"" + order + "\",\"sku\":\"" + pick(GOODS) + "\",\"shelf\":\"" + shelf + "\",\"left\":"
            + (isShort ? 0 : number(90)) + "}";
        return message(STOCK, isShort ? "short" : "reserved", order + " " + shelf, body);
    }

    Message shipment(String order) {
        int step = number(STEPS.length);
        String body = "{\"order\":\"" + order + "\",\"step\":\"" + STEPS[step] + "\",\"to\":{\"name\":\"" + pick(NAMES)
            + "\",\"city\":\"" + pick(CITIES) + "\"},\"note\":\"" + (number(9) == 0 ? "请放在门口 📦" : "") + "\"}";
        return message(SHIPMENT, STEPS[step], order, body);
    }

    Message click() {
        String body = "{\"session\":\"s" + number(5000) + "\",\"page\":\"" + pick(PAGES) + "\",\"ms\":" + number(4000) + "}";
        return message(CLICKS, null, null, body);
    }

    /** Long enough to be compressed. */
    Message invoice(String order) {
        StringBuilder body = new StringBuilder("{\"order\":\"" + order + "\",\"lines\":[");
        int lines = 60 + number(60);
        for (int line = 0; line < lines; line++) {
            body.append(line == 0 ? "" : ",").append("{\"line\":").append(line + 1).append(",\"sku\":\"").append(pick(GOODS))
                .append("\",\"text\":\"Artikel nach Bestellung, brutto für netto\",\"cents\":").append(350 + 50 * number(90)).append('}');
        }
        return message(INVOICE, "pdf", order, body.append("]}").toString());
    }

    Message reminder(String order, int delayLevel) {
        Message message = message(REMINDER, "reminder", order, "{\"order\":\"" + order + "\",\"text\":\"Your payment is due\"}");
        message.setDelayTimeLevel(delayLevel);
        return message;
    }

    Message settled(String order, String outcome) {
        return message(SETTLED, outcome, order, "{\"order\":\"" + order + "\",\"bank\":\"DE89 3704\",\"expected\":\"" + outcome + "\"}");
    }

    private String pick(String[] from) {
        return from[number(from.length)];
    }

    private static Message message(String topic, String tag, String keys, String body) {
        return new Message(topic, tag, keys, body.getBytes(StandardCharsets.UTF_8));
    }
}
