import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;

/** What the drivers in Java share: reading the script, and telling what came back; see ../README.md. */
final class Script {
    private static final Gson GSON = new GsonBuilder().serializeNulls().disableHtmlEscaping().create();

    String[][] commands;
    String[][] pipeline;

    static Script read(String path) throws IOException {
        return GSON.fromJson(Files.readString(Path.of(path)), Script.class);
    }

    static void say(String name, Object value) {
        System.out.println(GSON.toJson(Collections.singletonMap(name, value)));
    }

    static byte[] encoded(String word) {
        return word.getBytes(StandardCharsets.ISO_8859_1);
    }

    /** All words but the first. */
    static byte[][] arguments(String[] command) {
        byte[][] words = new byte[command.length - 1][];
        for (int at = 1; at < command.length; at++) {
            words[at - 1] = encoded(command[at]);
        }
        return words;
    }

    static Object error(Exception error) {
        return Map.of("error", error.getMessage());
    }

    static Object normal(Object reply) {
        if (reply instanceof byte[] bytes) {
            return new String(bytes, StandardCharsets.ISO_8859_1);
        }
        if (reply instanceof Map<?, ?> map) {
            List<Object> parts = new ArrayList<>();
            map.forEach((key, value) -> {
                parts.add(normal(key));
                parts.add(normal(value));
            });
            return parts;
        }
        if (reply instanceof Collection<?> replies) {
            List<Object> parts = new ArrayList<>();
            for (Object part : replies) {
                // A map, as Jedis has it.
                if (part instanceof Map.Entry<?, ?> pair) {
                    parts.add(normal(pair.getKey()));
                    parts.add(normal(pair.getValue()));
                } else {
                    parts.add(normal(part));
                }
            }
            return parts;
        }
        return reply;
    }

    /** Waits until the gateway was restarted. */
    static void restart() throws IOException {
        say("waiting", true);
        new BufferedReader(new InputStreamReader(System.in)).readLine();
    }

    /** Goes on until the library has reconnected. */
    static <T> T again(Callable<T> call) throws Exception {
        long until = System.nanoTime() + 60_000_000_000L;
        while (true) {
            try {
                return call.call();
            } catch (RuntimeException error) {
                if (System.nanoTime() > until) {
                    throw error;
                }
                Thread.sleep(50);
            }
        }
    }
}
