import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.Vector;
import redis.clients.jedis.Protocol;
import redis.clients.jedis.RedisClient;
import site.ycsb.ByteArrayByteIterator;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.Status;

/**
 * Lets YCSB keep each record in one string, with Jedis; properties redis.host and redis.port. An update reads the record, changes
 * fields, and writes it if it is still as it was read. Strings are in no order, so there are no scans.
 */
public final class StringClient extends DB {
    private RedisClient client;

    @Override
    public void init() {
        Properties properties = getProperties();
        int port = Integer.parseInt(properties.getProperty("redis.port"));
        client = RedisClient.create(properties.getProperty("redis.host"), port);
    }

    @Override
    public void cleanup() {
        client.close();
    }

    @Override
    public Status read(String table, String key, Set<String> fields, Map<String, ByteIterator> result) {
        byte[] record = client.get(name(key));
        if (record == null) {
            return Status.NOT_FOUND;
        }
        decoded(record).forEach((field, value) -> {
            if (fields == null || fields.contains(field)) {
                result.put(field, new ByteArrayByteIterator(value));
            }
        });
        return Status.OK;
    }

    @Override
    public Status insert(String table, String key, Map<String, ByteIterator> values) {
        client.set(name(key), encoded(with(new TreeMap<>(), values)));
        return Status.OK;
    }

    @Override
    public Status update(String table, String key, Map<String, ByteIterator> values) {
        // Can be read only once.
        Map<String, byte[]> changes = with(new TreeMap<>(), values);
        while (true) {
            byte[] record = client.get(name(key));
            if (record == null) {
                return Status.NOT_FOUND;
            }
            Map<String, byte[]> fields = decoded(record);
            fields.putAll(changes);
            byte[] ifeq = "IFEQ".getBytes(StandardCharsets.US_ASCII);
            Object written = client.sendCommand(Protocol.Command.SET, name(key), encoded(fields), ifeq, record);
            if (written != null) {
                return Status.OK;
            }
        }
    }

    @Override
    public Status delete(String table, String key) {
        return client.del(name(key)) == 1 ? Status.OK : Status.NOT_FOUND;
    }

    @Override
    public Status scan(
            String table, String key, int count, Set<String> fields, Vector<HashMap<String, ByteIterator>> result) {
        return Status.NOT_IMPLEMENTED;
    }

    private static byte[] name(String key) {
        return key.getBytes(StandardCharsets.UTF_8);
    }

    private static Map<String, byte[]> with(Map<String, byte[]> fields, Map<String, ByteIterator> values) {
        values.forEach((field, value) -> fields.put(field, value.toArray()));
        return fields;
    }

    private static byte[] encoded(Map<String, byte[]> fields) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        try {
            for (Map.Entry<String, byte[]> field : fields.entrySet()) {
                out.writeUTF(field.getKey());
                out.writeShort(field.getValue().length);
                out.write(field.getValue());
            }
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        return bytes.toByteArray();
    }

    private static Map<String, byte[]> decoded(byte[] record) {
        Map<String, byte[]> fields = new TreeMap<>();
        DataInputStream in = new DataInputStream(new ByteArrayInputStream(record));
        try {
            while (in.available() > 0) {
                String field = in.readUTF();
                byte[] value = new byte[in.readUnsignedShort()];
                in.readFully(value);
                fields.put(field, value);
            }
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        return fields;
    }
}
