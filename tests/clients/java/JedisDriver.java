import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Callable;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.RedisClusterClient;
import redis.clients.jedis.commands.ProtocolCommand;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.params.GetExParams;
import redis.clients.jedis.params.ScanParams;
import redis.clients.jedis.params.SetParams;

/** Jedis, driven through the script; see ../README.md. */
public final class JedisDriver {
    private static Object ask(Callable<?> call) throws Exception {
        try {
            return Script.normal(call.call());
        } catch (JedisDataException error) {
            return Script.error(error);
        }
    }

    private static ProtocolCommand name(String[] command) {
        return () -> Script.encoded(command[0]);
    }

    /** The library's own methods, and what they return. */
    private static Map<String, Object> typed(RedisClient r) throws Exception {
        Map<String, Object> got = new LinkedHashMap<>();
        got.put("ping", ask(r::ping));
        got.put("set", ask(() -> r.set("t", "one")));
        got.put("get", ask(() -> r.get("t")));
        got.put("get of nothing", ask(() -> r.get("t:nothing")));
        got.put("set if there is none", ask(() -> r.set("t", "two", SetParams.setParams().nx())));
        got.put("set for 100 s", ask(() -> r.set("t", "two", SetParams.setParams().ex(100))));
        got.put("ttl", ask(() -> r.ttl("t")));
        got.put("set and get", ask(() -> r.setGet("t", "three")));
        got.put("setnx", ask(() -> r.setnx("t:nx", "1")));
        got.put("setex", ask(() -> r.setex("t:ex", 100, "1")));
        got.put("psetex", ask(() -> r.psetex("t:ex", 100_000, "1")));
        got.put("pttl", ask(() -> r.pttl("t:ex")));
        got.put("getset", ask(() -> r.getSet("t", "four")));
        got.put("getex", ask(() -> r.getEx("t", GetExParams.getExParams().ex(100))));
        got.put("getdel", ask(() -> r.getDel("t")));
        got.put("append", ask(() -> r.append("t:text", "hello")));
        got.put("strlen", ask(() -> r.strlen("t:text")));
        got.put("getrange", ask(() -> r.getrange("t:text", 1, 3)));
        got.put("setrange", ask(() -> r.setrange("t:text", 0, "j")));
        got.put("incr", ask(() -> r.incr("t:n")));
        got.put("incrby", ask(() -> r.incrBy("t:n", 41)));
        got.put("decr", ask(() -> r.decr("t:n")));
        got.put("decrby", ask(() -> r.decrBy("t:n", 10)));
        got.put("incrbyfloat", ask(() -> r.incrByFloat("t:n", 0.5)));
        got.put("mset", ask(() -> r.mset("t:a", "1", "t:b", "2")));
        got.put("mget", ask(() -> r.mget("t:a", "t:nothing", "t:b")));
        got.put("msetnx", ask(() -> r.msetnx("t:once", "1")));
        got.put("exists", ask(() -> r.exists("t:a", "t:b", "t:nothing")));
        got.put("expire", ask(() -> r.expire("t:a", 100)));
        got.put("pexpire", ask(() -> r.pexpire("t:a", 100_000)));
        got.put("persist", ask(() -> r.persist("t:a")));
        got.put("type", ask(() -> r.type("t:a")));
        got.put("touch", ask(() -> r.touch("t:a", "t:b")));
        got.put("scan", ask(() -> r.scan("0", new ScanParams().match("t:[ab]").count(1000)).getResult()));
        got.put("keys", ask(() -> r.keys("t:[ab]")));
        got.put("unlink", ask(() -> r.unlink("t:a")));
        got.put("del", ask(() -> r.del("t:b")));
        got.put("an error", ask(() -> r.incr("t:text")));
        return got;
    }

    /** The library's client of a cluster: where it finds slots, and that keys of all are there. */
    private static RedisClusterClient cluster(String host, int port) {
        RedisClusterClient r = RedisClusterClient.create(new HostAndPort(host, port));
        int found = 0;
        for (int n = 0; n < 200; n++) {
            r.set("c:" + n, "" + n);
        }
        for (int n = 0; n < 200; n++) {
            found += r.get("c:" + n).equals("" + n) ? 1 : 0;
        }
        r.mset("{c}:a", "1", "{c}:b", "2");
        List<String> nodes = new ArrayList<>(r.getClusterNodes().keySet());
        Script.say("cluster", Map.of("nodes", nodes, "found", found, "tagged", r.mget("{c}:a", "{c}:b")));
        return r;
    }

    private static List<Object> pipeline(RedisClient client, String[][] commands) {
        try (Pipeline pipeline = client.pipelined()) {
            for (String[] command : commands) {
                pipeline.sendCommand(name(command), Script.arguments(command));
            }
            List<Object> replies = new ArrayList<>();
            for (Object reply : pipeline.syncAndReturnAll()) {
                boolean refused = reply instanceof JedisDataException;
                replies.add(refused ? Script.error((Exception) reply) : Script.normal(reply));
            }
            return replies;
        }
    }

    private static String version() throws IOException {
        Properties properties = new Properties();
        String at = "/META-INF/maven/redis.clients/jedis/pom.properties";
        try (InputStream text = RedisClient.class.getResourceAsStream(at)) {
            properties.load(text);
        }
        return properties.getProperty("version");
    }

    public static void main(String[] args) throws Exception {
        Script script = Script.read(args[2]);
        Script.say("client", "Jedis " + version());
        if (args.length > 3 && args[3].equals("cluster")) {
            try (RedisClusterClient r = cluster(args[0], Integer.parseInt(args[1]))) {
                Script.restart();
                Script.say("again", Script.again(() -> List.of(r.set("again", "1"), r.get("again"))));
            }
            return;
        }
        try (RedisClient client = RedisClient.create(args[0], Integer.parseInt(args[1]))) {
            for (String[] command : script.commands) {
                Script.say("reply", ask(() -> client.sendCommand(name(command), Script.arguments(command))));
            }
            Script.say("pipeline", pipeline(client, script.pipeline));
            Script.say("typed", typed(client));
            Script.restart();
            Script.say("again", Script.again(() -> List.of(client.set("again", "1"), client.get("again"))));
        }
    }
}
