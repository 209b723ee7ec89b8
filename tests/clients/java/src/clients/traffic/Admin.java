package traffic;

import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.apache.rocketmq.tools.command.MQAdminStartup;

/** mqadmin's commands, one a line of standard input; behind each, what it printed, between lines that name it. */
public final class Admin {
    private Admin() {}

    public static void main(String[] args) throws Exception {
        PrintStream out = System.out;
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        MQAdminStartup.initCommand();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            ByteArrayOutputStream said = new ByteArrayOutputStream();
            PrintStream there = new PrintStream(said, true, StandardCharsets.UTF_8);
            System.setOut(there);
            System.setErr(there);
            try {
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
}
