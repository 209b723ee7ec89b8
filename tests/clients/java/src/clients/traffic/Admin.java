package traffic;

import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.apache.rocketmq.tools.command.MQAdminStartup;

/** mqadmin's commands, one a line of standard input; behind each, what it printed, between lines that name it. */
public final class Admin {
    private Admin() {}

    public static void main(String[] args) throws Exception {
        PrintStream out = System.out;
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            ByteArrayOutputStream said = new ByteArrayOutputStream();
            PrintStream there = new PrintStream(said, true, StandardCharsets.UTF_8);
            System.setOut(there);
            System.setErr(there);
            try {
                renewCommands();
                MQAdminStartup.main0(line.split(" "), null);
            } catch (Throwable e) {
                e.printStackTrace(there);
            }
            there.flush();
            out.println("### " + line);
            out.println(said.toString(StandardCharsets.UTF_8));
            out.flush();
        }
        System.exit(0);
    }

    /** Some commands keep their client, and what they were asked before. */
    private static void renewCommands() throws ReflectiveOperationException {
        for (Field field : MQAdminStartup.class.getDeclaredFields()) {
            if (List.class.isAssignableFrom(field.getType())) {
                field.setAccessible(true);
                ((List<?>) field.get(null)).clear();
            }
        }
        MQAdminStartup.initCommand();
    }
}
