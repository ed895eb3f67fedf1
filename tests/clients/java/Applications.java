import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.function.BooleanSupplier;
import org.redisson.Redisson;
import org.redisson.api.RAtomicLong;
import org.redisson.api.RBucket;
import org.redisson.api.RBuckets;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;
import org.springframework.cache.Cache;
import org.springframework.data.redis.cache.RedisCache;
import org.springframework.data.redis.cache.RedisCacheConfiguration;
import org.springframework.data.redis.cache.RedisCacheManager;
import org.springframework.data.redis.cache.RedisCacheWriter;
import org.springframework.data.redis.connection.RedisConnectionFactory;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.core.RedisTemplate;
import org.springframework.data.redis.serializer.RedisSerializer;
import org.springframework.session.Session;
import org.springframework.session.SessionRepository;
import org.springframework.session.data.redis.RedisSessionRepository;

/** Applications in Java, as they come, against a gateway; see ../README.md. */
public final class Applications {
    /** Whether it becomes true: the cache writes while its caller goes on, unless told otherwise. */
    private static boolean soon(BooleanSupplier condition) throws InterruptedException {
        for (int tries = 0; tries < 1000; tries++) {
            if (condition.getAsBoolean()) {
                return true;
            }
            Thread.sleep(5);
        }
        return false;
    }

    private static void spring(RedisConnectionFactory factory) {
        Checks c = new Checks("Spring Data Redis cache", RedisCache.class);
        Cache cache = RedisCacheManager.create(factory).getCache("plain");
        RedisCacheConfiguration hours = RedisCacheConfiguration.defaultCacheConfig().entryTtl(Duration.ofHours(1));
        Cache timed = RedisCacheManager.builder(factory).cacheDefaults(hours).build().getCache("timed");
        RedisCacheWriter locking = RedisCacheWriter.lockingRedisCacheWriter(factory);
        Cache locked = RedisCacheManager.builder(locking).build().getCache("locked");
        c.check("put, get", () -> {
            cache.put("a", "one");
            return soon(() -> "one".equals(cache.get("a", String.class)));
        });
        c.check("put, get for a time", () -> {
            timed.put("a", "one");
            return soon(() -> "one".equals(timed.get("a", String.class)));
        });
        c.check("get with a loader", () ->
            cache.get("l", () -> 7) == 7 && soon(() -> cache.get("l") != null) && cache.get("l", () -> 8) == 7);
        c.check("putIfAbsent", () ->
            timed.putIfAbsent("b", 1) == null && timed.putIfAbsent("b", 2).get().equals(1));
        c.check("evict, evictIfPresent", () -> {
            cache.evict("a");
            boolean gone = soon(() -> cache.get("a") == null);
            return gone && timed.evictIfPresent("a") && !timed.evictIfPresent("a");
        });
        c.check("with a locking writer", () -> {
            locked.put("a", "one");
            boolean found = soon(() -> locked.get("a") != null) && locked.putIfAbsent("a", "two").get().equals("one");
            locked.clear();
            return found && soon(() -> locked.get("a") == null);
        });
        c.check("clear", () -> {
            cache.clear();
            return soon(() -> cache.get("l") == null) && timed.get("b") != null;
        });
        c.say();
    }

    private static <S extends Session> boolean sessionIsKept(SessionRepository<S> sessions) {
        S session = sessions.createSession();
        session.setAttribute("user", "somebody");
        sessions.save(session);
        S found = sessions.findById(session.getId());
        return found != null && "somebody".equals(found.getAttribute("user"));
    }

    private static void springSession(RedisConnectionFactory factory) {
        RedisTemplate<String, Object> template = new RedisTemplate<>();
        template.setKeySerializer(RedisSerializer.string());
        template.setHashKeySerializer(RedisSerializer.string());
        template.setConnectionFactory(factory);
        template.afterPropertiesSet();
        Checks c = new Checks("Spring Session", RedisSessionRepository.class);
        c.check("save, findById", () -> sessionIsKept(new RedisSessionRepository(template)));
        c.say();
    }

    private static void redissonValues(RedissonClient redisson) {
        Checks c = new Checks("Redisson", Redisson.class);
        RBucket<String> bucket = redisson.getBucket("bucket");
        c.check("RBucket: set, get", () -> {
            bucket.set("one", Duration.ofSeconds(100));
            return bucket.get().equals("one") && bucket.remainTimeToLive() > 90_000;
        });
        c.check("RBucket: setIfAbsent, compareAndSet, getAndDelete", () ->
            !bucket.setIfAbsent("two") && bucket.compareAndSet("one", "two")
                && !bucket.compareAndSet("one", "three") && bucket.getAndDelete().equals("two"));
        RBuckets buckets = redisson.getBuckets();
        Map<String, String> many = new LinkedHashMap<>();
        for (int n = 0; n < 10; n++) {
            many.put("many-" + n, "value " + n);
        }
        String[] names = many.keySet().toArray(new String[0]);
        c.check("RBuckets: set, get", () -> {
            buckets.set(many);
            return Objects.equals(buckets.get(names), many);
        });
        c.check("RBuckets: trySet", () -> buckets.trySet(Map.of("try-1", 1, "try-2", 2)));
        c.check("RBuckets: trySet of keys with one tag", () ->
            buckets.trySet(Map.of("{try}-1", 1, "{try}-2", 2)) && !buckets.trySet(Map.of("{try}-1", 1)));
        RAtomicLong number = redisson.getAtomicLong("number");
        c.check("RAtomicLong: incrementAndGet, addAndGet, get", () ->
            number.incrementAndGet() == 1 && number.addAndGet(41) == 42 && number.get() == 42);
        c.check("RAtomicLong: compareAndSet, getAndSet", () ->
            number.compareAndSet(42, 7) && !number.compareAndSet(42, 8) && number.getAndSet(9) == 7);
        c.check("RKeys: delete, deleteByPattern", () ->
            redisson.getKeys().delete("number") == 1 && redisson.getKeys().deleteByPattern("many-*") == 10);
        c.check("RLock: tryLock, unlock", () -> {
            RLock lock = redisson.getLock("lock");
            boolean held = lock.tryLock();
            lock.unlock();
            return held;
        });
        c.check("RMap: put, get", () -> {
            redisson.getMap("map").put("a", "one");
            return redisson.getMap("map").get("a").equals("one");
        });
        c.say();
    }

    public static void main(String[] args) {
        LettuceConnectionFactory factory = new LettuceConnectionFactory(args[0], Integer.parseInt(args[1]));
        factory.afterPropertiesSet();
        factory.start();
        spring(factory);
        springSession(factory);
        factory.destroy();
        Config config = new Config();
        config.useSingleServer().setAddress("redis://" + args[0] + ":" + args[1]);
        RedissonClient redisson = Redisson.create(config);
        redissonValues(redisson);
        redisson.shutdown();
    }
}
