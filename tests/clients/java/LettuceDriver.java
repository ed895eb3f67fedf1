import io.lettuce.core.GetExArgs;
import io.lettuce.core.LettuceVersion;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.ScanArgs;
import io.lettuce.core.SetArgs;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.cluster.RedisClusterClient;
import io.lettuce.core.cluster.api.sync.RedisAdvancedClusterCommands;
import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.output.CommandOutput;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.ProtocolKeyword;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;

/** Lettuce, driven through the script; see ../README.md. */
public final class LettuceDriver {
    private static Object ask(Callable<?> call) throws Exception {
        try {
            return Script.normal(call.call());
        } catch (RedisCommandExecutionException error) {
            return Script.error(error);
        }
    }

    private record Name(String name) implements ProtocolKeyword {
        @Override
        public byte[] getBytes() {
            return Script.encoded(name);
        }

        @Override
        public String toString() {
            return name;
        }
    }

    /** Any reply; the library knows the form of those that its own methods ask for. */
    private static final class AnyOutput extends CommandOutput<byte[], byte[], Object> {
        private record Open(List<Object> parts, int count) {}

        private final Deque<Open> open = new ArrayDeque<>();

        AnyOutput() {
            super(ByteArrayCodec.INSTANCE, null);
        }

        @Override
        public void set(ByteBuffer bytes) {
            put(bytes == null ? null : ByteArrayCodec.INSTANCE.decodeValue(bytes));
        }

        @Override
        public void set(long number) {
            put(number);
        }

        @Override
        public void multi(int count) {
            List<Object> parts = new ArrayList<>();
            put(parts);
            open.push(new Open(parts, count));
            close();
        }

        private void put(Object value) {
            if (open.isEmpty()) {
                output = value;
            } else {
                open.peek().parts().add(value);
                if (!(value instanceof List)) {
                    close();
                }
            }
        }

        private void close() {
            while (!open.isEmpty() && open.peek().parts().size() == open.peek().count()) {
                open.pop();
            }
        }
    }

    private static RedisFuture<Object> send(StatefulRedisConnection<byte[], byte[]> raw, String[] command) {
        CommandArgs<byte[], byte[]> args = new CommandArgs<>(ByteArrayCodec.INSTANCE);
        for (byte[] word : Script.arguments(command)) {
            args.add(word);
        }
        return raw.async().dispatch(new Name(command[0]), new AnyOutput(), args);
    }

    private static Object reply(RedisFuture<Object> sent) throws Exception {
        try {
            return Script.normal(sent.get());
        } catch (ExecutionException error) {
            if (error.getCause() instanceof RedisCommandExecutionException refused) {
                return Script.error(refused);
            }
            throw error;
        }
    }

    /** Sends everything before it waits for anything. */
    private static List<Object> pipeline(StatefulRedisConnection<byte[], byte[]> raw, String[][] commands)
            throws Exception {
        raw.setAutoFlushCommands(false);
        List<RedisFuture<Object>> sent = new ArrayList<>();
        for (String[] command : commands) {
            sent.add(send(raw, command));
        }
        raw.flushCommands();
        raw.setAutoFlushCommands(true);
        List<Object> replies = new ArrayList<>();
        for (RedisFuture<Object> one : sent) {
            replies.add(reply(one));
        }
        return replies;
    }

    /** The library's own methods, and what they return. */
    private static Map<String, Object> typed(RedisCommands<String, String> r) throws Exception {
        Map<String, Object> got = new LinkedHashMap<>();
        got.put("ping", ask(r::ping));
        got.put("set", ask(() -> r.set("t", "one")));
        got.put("get", ask(() -> r.get("t")));
        got.put("get of nothing", ask(() -> r.get("t:nothing")));
        got.put("set if there is none", ask(() -> r.set("t", "two", SetArgs.Builder.nx())));
        got.put("set for 100 s", ask(() -> r.set("t", "two", SetArgs.Builder.ex(100))));
        got.put("ttl", ask(() -> r.ttl("t")));
        got.put("set and get", ask(() -> r.setGet("t", "three")));
        got.put("setnx", ask(() -> r.setnx("t:nx", "1")));
        got.put("setex", ask(() -> r.setex("t:ex", 100, "1")));
        got.put("psetex", ask(() -> r.psetex("t:ex", 100_000, "1")));
        got.put("pttl", ask(() -> r.pttl("t:ex")));
        got.put("getset", ask(() -> r.getset("t", "four")));
        got.put("getex", ask(() -> r.getex("t", GetExArgs.Builder.ex(100))));
        got.put("getdel", ask(() -> r.getdel("t")));
        got.put("append", ask(() -> r.append("t:text", "hello")));
        got.put("strlen", ask(() -> r.strlen("t:text")));
        got.put("getrange", ask(() -> r.getrange("t:text", 1, 3)));
        got.put("setrange", ask(() -> r.setrange("t:text", 0, "j")));
        got.put("incr", ask(() -> r.incr("t:n")));
        got.put("incrby", ask(() -> r.incrby("t:n", 41)));
        got.put("decr", ask(() -> r.decr("t:n")));
        got.put("decrby", ask(() -> r.decrby("t:n", 10)));
        got.put("incrbyfloat", ask(() -> r.incrbyfloat("t:n", 0.5)));
        got.put("mset", ask(() -> r.mset(Map.of("t:a", "1", "t:b", "2"))));
        List<String> values = new ArrayList<>();
        r.mget("t:a", "t:nothing", "t:b").forEach(pair -> values.add(pair.getValueOrElse(null)));
        got.put("mget", values);
        got.put("msetnx", ask(() -> r.msetnx(Map.of("t:once", "1"))));
        got.put("exists", ask(() -> r.exists("t:a", "t:b", "t:nothing")));
        got.put("expire", ask(() -> r.expire("t:a", 100)));
        got.put("pexpire", ask(() -> r.pexpire("t:a", 100_000)));
        got.put("persist", ask(() -> r.persist("t:a")));
        got.put("type", ask(() -> r.type("t:a")));
        got.put("touch", ask(() -> r.touch("t:a", "t:b")));
        ScanArgs pages = ScanArgs.Builder.matches("t:[ab]").limit(1000);
        got.put("scan", ask(() -> r.scan(pages).getKeys()));
        got.put("keys", ask(() -> r.keys("t:[ab]")));
        got.put("unlink", ask(() -> r.unlink("t:a")));
        got.put("del", ask(() -> r.del("t:b")));
        got.put("an error", ask(() -> r.incr("t:text")));
        return got;
    }

    /** The library's client of a cluster: where it finds slots, and that keys of all are there. */
    private static void cluster(RedisURI at) throws Exception {
        RedisClusterClient client = RedisClusterClient.create(at);
        RedisAdvancedClusterCommands<String, String> r = client.connect().sync();
        int found = 0;
        for (int n = 0; n < 200; n++) {
            r.set("c:" + n, "" + n);
        }
        for (int n = 0; n < 200; n++) {
            found += r.get("c:" + n).equals("" + n) ? 1 : 0;
        }
        r.mset(Map.of("{c}:a", "1", "{c}:b", "2"));
        List<String> nodes = new ArrayList<>();
        client.getPartitions().forEach(node -> nodes.add(node.getUri().getHost() + ":" + node.getUri().getPort()));
        List<String> tagged = new ArrayList<>();
        r.mget("{c}:a", "{c}:b").forEach(pair -> tagged.add(pair.getValueOrElse(null)));
        Script.say("cluster", Map.of("nodes", nodes, "found", found, "tagged", tagged));
        Script.restart();
        Script.say("again", Script.again(() -> List.of(r.set("again", "1"), r.get("again"))));
        client.shutdown();
    }

    public static void main(String[] args) throws Exception {
        Script script = Script.read(args[2]);
        Script.say("client", "Lettuce " + LettuceVersion.getVersion());
        if (args.length > 3 && args[3].equals("cluster")) {
            cluster(RedisURI.create(args[0], Integer.parseInt(args[1])));
            return;
        }
        RedisClient client = RedisClient.create(RedisURI.create(args[0], Integer.parseInt(args[1])));
        StatefulRedisConnection<byte[], byte[]> raw = client.connect(ByteArrayCodec.INSTANCE);
        for (String[] command : script.commands) {
            Script.say("reply", reply(send(raw, command)));
        }
        Script.say("pipeline", pipeline(raw, script.pipeline));
        RedisCommands<String, String> commands = client.connect().sync();
        Script.say("typed", typed(commands));
        Script.restart();
        Script.say("again", Script.again(() -> List.of(commands.set("again", "1"), commands.get("again"))));
        client.shutdown();
    }
}
