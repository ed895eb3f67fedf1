"""Applications in Python, as they come, against a gateway; see ../README.md."""

import asyncio
import importlib.metadata
import json
import sys
import threading
import time

MANY = {f"key-{n}": f"value {n}" for n in range(10)}


class Checks:
    """What an application is asked to do, and what became of each."""

    def __init__(self, package, name):
        self.name = f"{name} {importlib.metadata.version(package)}"
        self.done = []

    def note(self, what, result):
        self.done.append([what, result])

    def check(self, what, call):
        """Notes whether the call did what it says: it returns whether that is so."""
        try:
            self.note(what, "works" if call() else "lost")
        except Exception as error:  # whatever the application makes of a refusal
            sys.stderr.write(f"{self.name}: {what}: {error}\n")
            self.note(what, "refused")

    async def check_async(self, what, call):
        try:
            self.note(what, "works" if await call() else "lost")
        except Exception as error:
            sys.stderr.write(f"{self.name}: {what}: {error}\n")
            self.note(what, "refused")

    def say(self):
        print(json.dumps({"application": self.name, "checks": self.done}), flush=True)


def django(host, port):
    from django.conf import settings

    backend = "django.core.cache.backends.redis.RedisCache"
    location = f"redis://{host}:{port}/1"
    settings.configure(
        CACHES={"default": {"BACKEND": backend, "LOCATION": location}},
        SESSION_ENGINE="django.contrib.sessions.backends.cache",
    )
    from django.contrib.sessions.backends.cache import SessionStore
    from django.core.cache import cache

    def session():
        store = SessionStore()
        store["user"] = 7
        store.save()
        again = SessionStore(session_key=store.session_key)
        found = again["user"] == 7
        again.flush()
        return found and not store.exists(store.session_key)

    def set_for(timeout):
        cache.delete_many(MANY)
        return cache.set_many(MANY, timeout) == [] and cache.get_many(MANY) == MANY

    def delete_many():
        for key in MANY:
            cache.set(key, 1)
        cache.delete_many(MANY)
        return cache.get_many(MANY) == {}

    c = Checks("django", "Django cache")
    c.check("set, get, has_key", lambda: (
        cache.set("a", {"n": 1}), cache.get("a") == {"n": 1} and cache.has_key("a"))[-1])
    c.check("add", lambda: cache.add("b", 1, 60) and not cache.add("b", 2))
    c.check("incr, decr", lambda: cache.incr("b", 5) == 6 and cache.decr("b") == 5)
    c.check("touch", lambda: cache.touch("b", 100) and not cache.touch("nothing"))
    c.check("get_or_set", lambda: cache.get_or_set("c", lambda: 3) == 3 and cache.get("c") == 3)
    c.check("delete", lambda: cache.delete("c") and not cache.delete("c"))
    c.check("set_many for ever", lambda: set_for(None))
    c.check("set_many for a time", lambda: set_for(100))
    c.check("delete_many", delete_many)
    c.check("sessions", session)
    c.check("clear", lambda: cache.clear() and cache.get("a") is None)
    c.say()


def dogpile(host, port):
    from dogpile.cache import make_region
    from dogpile.cache.api import NO_VALUE

    def region(**more):
        arguments = {"host": host, "port": port, **more}
        return make_region().configure("dogpile.cache.redis", arguments=arguments)

    def set_multi(r, key):
        many = {f"{key}-{n}": n for n in range(10)}
        r.set_multi(many)
        return r.get_multi(list(many)) == list(many.values())

    c = Checks("dogpile.cache", "dogpile.cache")
    plain, timed = region(), region(redis_expiration_time=100)
    c.check("set, get", lambda: (plain.set("d", 1), plain.get("d") == 1)[-1])
    c.check("get_or_create", lambda: plain.get_or_create("e", lambda: 2) == 2)
    c.check("set_multi for ever", lambda: set_multi(plain, "plain"))
    c.check("set_multi for a time", lambda: set_multi(timed, "timed"))
    c.check("delete_multi", lambda: (
        plain.delete_multi(["d", "e"]), plain.get_multi(["d", "e"]) == [NO_VALUE] * 2)[-1])
    c.say()


async def aiocache(host, port):
    from aiocache import Cache

    cache = Cache(Cache.REDIS, endpoint=host, port=port, namespace="aio:")
    pairs = list(MANY.items())

    async def plain():
        await cache.set("a", "1", ttl=100)
        return await cache.get("a") == "1" and await cache.exists("a")

    async def multi(ttl):
        await cache.multi_set(pairs, ttl=ttl)
        return await cache.multi_get(list(MANY)) == list(MANY.values())

    async def deleted():
        return await cache.delete("a") == 1 and not await cache.exists("a")

    async def cleared():
        for key in MANY:
            await cache.set(key, "1")
        await cache.clear()
        return await cache.multi_get(list(MANY)) == [None] * len(MANY)

    async def incremented():
        return await cache.increment("n", 2) == 2 and await cache.increment("n", -1) == 1

    c = Checks("aiocache", "aiocache")
    await c.check_async("set, get, exists", plain)
    await c.check_async("increment", incremented)
    await c.check_async("multi_set for ever", lambda: multi(None))
    await c.check_async("multi_set for a time", lambda: multi(100))
    await c.check_async("delete", deleted)
    await c.check_async("clear of a namespace", cleared)
    c.say()
    await cache.close()


def locks(host, port):
    import redis
    from redis.exceptions import LockNotOwnedError

    client = redis.Redis(host=host, port=port)

    def contended():
        done = [0]

        def work():
            own = redis.Redis(host=host, port=port)
            for _ in range(5):
                with own.lock("lock", timeout=10, sleep=0.005):
                    seen = done[0]
                    time.sleep(0.002)
                    done[0] = seen + 1

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return done[0] == 20

    def extended():
        lock = client.lock("extended", timeout=1)
        longer = lock.acquire(blocking=False) and lock.extend(100)
        longer = longer and client.pttl("extended") > 90000
        again = lock.reacquire() and client.pttl("extended") <= 1000
        lock.release()
        return longer and again and not client.exists("extended")

    def lost():
        lock = client.lock("lost", timeout=100)
        lock.acquire()
        client.set("lost", "another's")
        try:
            lock.release()
        except LockNotOwnedError:
            return client.get("lost") == b"another's"
        return False

    c = Checks("redis", "Lock of redis-py")
    c.check("twenty times, by four threads", contended)
    c.check("extend, reacquire, release", extended)
    c.check("release of a lock that is another's", lost)
    c.say()


def redlock(host, port):
    import redis
    from pottery import Redlock
    from pottery.exceptions import ReleaseUnlockedLock

    masters = {redis.Redis(host=host, port=port)}

    def lock(key):
        return Redlock(key=key, masters=masters, auto_release_time=100)

    def exclusive():
        held = lock("pottery")
        first = held.acquire(blocking=False) and not lock("pottery").acquire(blocking=False)
        held.release()
        return first and lock("pottery").acquire(blocking=False)

    def extended():
        held = lock("longer")
        held.acquire()
        held.extend()
        left = held.locked()
        held.release()
        return left > 90 and held.locked() == 0

    def lost():
        held = lock("lost-lock")
        held.acquire()
        for master in masters:
            master.set(held.key, "another's")
        try:
            held.release()
        except ReleaseUnlockedLock:
            return all(master.get(held.key) == b"another's" for master in masters)
        return False

    c = Checks("pottery", "Redlock of pottery")
    c.check("acquire, release", exclusive)
    c.check("extend, locked", extended)
    c.check("release of a lock that is another's", lost)
    c.say()


def limiters(host, port):
    from limits import RateLimitItemPerYear
    from limits.storage import storage_from_string
    from limits.strategies import (
        FixedWindowRateLimiter,
        MovingWindowRateLimiter,
        SlidingWindowCounterRateLimiter,
    )

    storage = storage_from_string(f"redis://{host}:{port}")

    def limited(strategy):
        limiter, item = strategy(storage), RateLimitItemPerYear(3)
        hits = [limiter.hit(item, strategy.__name__) for _ in range(5)]
        return hits == [True] * 3 + [False] * 2

    c = Checks("limits", "limits")
    c.check("fixed window", lambda: limited(FixedWindowRateLimiter))
    c.check("sliding window counter", lambda: limited(SlidingWindowCounterRateLimiter))
    c.check("moving window", lambda: limited(MovingWindowRateLimiter))
    c.say()


def flask_limiter(host, port):
    from flask import Flask
    from flask_limiter import Limiter

    def limited(strategy):
        app = Flask(strategy)
        app.testing = True  # An error comes to the caller, and not a page that says so.
        Limiter(
            lambda: strategy, app=app, default_limits=["3 per year"], strategy=strategy,
            storage_uri=f"redis://{host}:{port}",
        )
        app.add_url_rule("/", view_func=lambda: "some page", endpoint="page")
        client = app.test_client()
        return [client.get("/").status_code for _ in range(5)] == [200] * 3 + [429] * 2

    c = Checks("flask-limiter", "Flask-Limiter")
    for strategy in ["fixed-window", "sliding-window-counter", "moving-window"]:
        c.check(strategy, lambda: limited(strategy))
    c.say()


def celery(host, port):
    from celery import Celery

    app = Celery("tasks", broker=f"redis://{host}:{port}", backend=f"redis://{host}:{port}")

    def sent():
        app.send_task("add", args=(1, 2), retry=False)
        with app.connection_for_read() as connection:
            return connection.SimpleQueue("celery").get(timeout=5) is not None

    def kept():
        app.backend.store_result("some-task", 3, "SUCCESS")
        return app.AsyncResult("some-task").get(timeout=5) == 3

    c = Checks("celery", "Celery")
    c.check("send a task, Redis being the broker", sent)
    c.check("keep a result, Redis being the backend", kept)
    c.say()


def main():
    host, port = sys.argv[1], int(sys.argv[2])
    django(host, port)
    dogpile(host, port)
    asyncio.run(aiocache(host, port))
    locks(host, port)
    redlock(host, port)
    limiters(host, port)
    flask_limiter(host, port)
    celery(host, port)


main()
