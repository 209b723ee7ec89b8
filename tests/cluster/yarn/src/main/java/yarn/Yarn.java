package yarn;

import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.MiniYARNCluster;

/** A YARN of one process: a ResourceManager and NodeManagers. It ends with its standard input. */
public final class Yarn {
    private static final String[] FOR_CLIENTS = {
        YarnConfiguration.RM_ADDRESS, YarnConfiguration.RM_SCHEDULER_ADDRESS, YarnConfiguration.RM_WEBAPP_ADDRESS
    };

    private Yarn() {}

    /** FOLDER NODES: what clients need goes to FOLDER; the line "ready" says that all nodes are there. */
    public static void main(String[] words) {
        int status = 1;
        try {
            serve(Path.of(words[0]), Integer.parseInt(words[1]));
            status = 0;
        } catch (Throwable error) {
            error.printStackTrace();
        }
        Runtime.getRuntime().halt(status);  // threads of a cluster that did not start whole live on
    }

    private static void serve(Path folder, int nodes) throws Exception {
        Configuration settings = new YarnConfiguration();
        settings.set("fs.defaultFS", "file:///");
        // 4 GiB a node; the narrow queue of two nodes has room for two containers of 1 GiB.
        settings.set("yarn.scheduler.capacity.root.queues", "default,narrow");
        settings.set("yarn.scheduler.capacity.root.default.capacity", "75");
        settings.set("yarn.scheduler.capacity.root.narrow.capacity", "25");
        settings.set("yarn.scheduler.capacity.root.narrow.maximum-capacity", "25");
        MiniYARNCluster cluster = new MiniYARNCluster("yarn", nodes, 1, 1);
        cluster.init(settings);
        cluster.start();
        if (!cluster.waitForNodeManagersToConnect(60_000)) {
            throw new IllegalStateException("not all nodes came");
        }
        Configuration site = new Configuration(false);
        for (String name : FOR_CLIENTS) {
            site.set(name, cluster.getConfig().get(name));
        }
        write(site, folder.resolve("yarn-site.xml"));
        Configuration core = new Configuration(false);
        core.set("fs.defaultFS", "file:///");
        write(core, folder.resolve("core-site.xml"));
        System.out.println("ready");
        while (System.in.read() >= 0) {
        }
    }

    private static void write(Configuration settings, Path file) throws Exception {
        try (OutputStream out = Files.newOutputStream(file)) {
            settings.writeXml(out);
        }
    }
}
