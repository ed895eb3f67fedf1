"""redis-py, driven through the script; see ../README.md."""

import json
import sys
import time

import redis


def say(name, value):
    print(json.dumps({name: value}), flush=True)


def normal(reply):
    if isinstance(reply, bytes):
        return reply.decode("latin-1")
    if isinstance(reply, redis.ResponseError):
        return {"error": str(reply)}
    if isinstance(reply, dict):
        return [normal(part) for pair in reply.items() for part in pair]
    if isinstance(reply, (list, tuple, set)):
        return [normal(part) for part in reply]
    return reply


def encoded(command):
    return [word.encode("latin-1") for word in command]


def ask(call, *args, **kwargs):
    try:
        return normal(call(*args, **kwargs))
    except redis.ResponseError as error:
        return normal(error)


def typed(r):
    """The library's own methods, and what they return."""
    return {
        "ping": ask(r.ping),
        "set": ask(r.set, "t", "one"),
        "get": ask(r.get, "t"),
        "get of nothing": ask(r.get, "t:nothing"),
        "set if there is none": ask(r.set, "t", "two", nx=True),
        "set for 100 s": ask(r.set, "t", "two", ex=100),
        "ttl": ask(r.ttl, "t"),
        "set and get": ask(r.set, "t", "three", get=True),
        "setnx": ask(r.setnx, "t:nx", "1"),
        "setex": ask(r.setex, "t:ex", 100, "1"),
        "psetex": ask(r.psetex, "t:ex", 100_000, "1"),
        "pttl": ask(r.pttl, "t:ex"),
        "getset": ask(r.getset, "t", "four"),
        "getex": ask(r.getex, "t", ex=100),
        "getdel": ask(r.getdel, "t"),
        "append": ask(r.append, "t:text", "hello"),
        "strlen": ask(r.strlen, "t:text"),
        "getrange": ask(r.getrange, "t:text", 1, 3),
        "setrange": ask(r.setrange, "t:text", 0, "j"),
        "incr": ask(r.incr, "t:n"),
        "incrby": ask(r.incrby, "t:n", 41),
        "decr": ask(r.decr, "t:n"),
        "decrby": ask(r.decrby, "t:n", 10),
        "incrbyfloat": ask(r.incrbyfloat, "t:n", 0.5),
        "mset": ask(r.mset, {"t:a": "1", "t:b": "2"}),
        "mget": ask(r.mget, "t:a", "t:nothing", "t:b"),
        "msetnx": ask(r.msetnx, {"t:once": "1"}),
        "exists": ask(r.exists, "t:a", "t:b", "t:nothing"),
        "expire": ask(r.expire, "t:a", 100),
        "pexpire": ask(r.pexpire, "t:a", 100_000),
        "persist": ask(r.persist, "t:a"),
        "type": ask(r.type, "t:a"),
        "touch": ask(r.touch, "t:a", "t:b"),
        "scan": [normal(key) for key in r.scan_iter(match="t:[ab]")],
        "keys": ask(r.keys, "t:[ab]"),
        "unlink": ask(r.unlink, "t:a"),
        "del": ask(r.delete, "t:b"),
        "an error": ask(r.incr, "t:text"),
    }


def cluster(host, port):
    """The library's client of a cluster: where it finds slots, and that keys of all are there."""
    r = redis.RedisCluster(host=host, port=port, decode_responses=True)
    for n in range(200):
        r.set(f"c:{n}", str(n))
    tagged = r.pipeline(transaction=True)
    tagged.set("{c}:a", "1")
    tagged.set("{c}:b", "2")
    tagged.execute()
    say("cluster", {
        "nodes": [f"{node.host}:{node.port}" for node in r.get_nodes()],
        "found": sum(r.get(f"c:{n}") == str(n) for n in range(200)),
        "tagged": r.mget("{c}:a", "{c}:b"),
    })
    return r


def again(r):
    """Goes on with the same object until it has reconnected."""
    until = time.monotonic() + 60
    while True:
        try:
            return [normal(r.set("again", "1")), normal(r.get("again"))]
        except redis.ConnectionError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


def main():
    host, port, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    with open(path, encoding="utf-8") as file:
        script = json.load(file)
    say("client", f"redis-py {redis.__version__}")
    if sys.argv[4:] == ["cluster"]:
        client = cluster(host, port)
        say("waiting", True)
        sys.stdin.readline()
        say("again", again(client))
        return
    raw = redis.Redis(host=host, port=port)
    # Replies as they are; what the library makes of them is what `typed` is about.
    raw.response_callbacks.clear()
    for command in script["commands"]:
        say("reply", ask(raw.execute_command, *encoded(command)))
    pipeline = raw.pipeline(transaction=False)
    for command in script["pipeline"]:
        pipeline.execute_command(*encoded(command))
    say("pipeline", normal(pipeline.execute(raise_on_error=False)))
    client = redis.Redis(host=host, port=port)
    say("typed", typed(client))
    say("waiting", True)
    sys.stdin.readline()
    say("again", again(client))


main()
