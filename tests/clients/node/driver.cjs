// ioredis, driven through the script; see ../README.md.
"use strict";

const fs = require("node:fs");
const readline = require("node:readline");
const Redis = require("ioredis");

const say = (name, value) => process.stdout.write(`${JSON.stringify({ [name]: value })}\n`);

function normal(reply) {
  if (Buffer.isBuffer(reply)) return reply.toString("latin1");
  if (reply instanceof Error) return { error: reply.message };
  if (Array.isArray(reply)) return reply.map(normal);
  if (reply instanceof Map) return [...reply.entries()].flat().map(normal);
  if (reply !== null && typeof reply === "object") return Object.entries(reply).flat().map(normal);
  return reply;
}

const bytes = (words) => words.map((word) => Buffer.from(word, "latin1"));

async function ask(promise) {
  try {
    return normal(await promise);
  } catch (error) {
    if (error.name !== "ReplyError") throw error;
    return normal(error);
  }
}

async function scan(r) {
  const keys = [];
  for await (const page of r.scanStream({ match: "t:[ab]" })) keys.push(...page);
  return keys;
}

// The library's own methods, and what they return.
async function typed(r) {
  return {
    ping: await ask(r.ping()),
    set: await ask(r.set("t", "one")),
    get: await ask(r.get("t")),
    "get of nothing": await ask(r.get("t:nothing")),
    "set if there is none": await ask(r.set("t", "two", "NX")),
    "set for 100 s": await ask(r.set("t", "two", "EX", 100)),
    ttl: await ask(r.ttl("t")),
    "set and get": await ask(r.set("t", "three", "GET")),
    setnx: await ask(r.setnx("t:nx", "1")),
    setex: await ask(r.setex("t:ex", 100, "1")),
    psetex: await ask(r.psetex("t:ex", 100000, "1")),
    pttl: await ask(r.pttl("t:ex")),
    getset: await ask(r.getset("t", "four")),
    getex: await ask(r.getex("t", "EX", 100)),
    getdel: await ask(r.getdel("t")),
    append: await ask(r.append("t:text", "hello")),
    strlen: await ask(r.strlen("t:text")),
    getrange: await ask(r.getrange("t:text", 1, 3)),
    setrange: await ask(r.setrange("t:text", 0, "j")),
    incr: await ask(r.incr("t:n")),
    incrby: await ask(r.incrby("t:n", 41)),
    decr: await ask(r.decr("t:n")),
    decrby: await ask(r.decrby("t:n", 10)),
    incrbyfloat: await ask(r.incrbyfloat("t:n", 0.5)),
    mset: await ask(r.mset({ "t:a": "1", "t:b": "2" })),
    mget: await ask(r.mget("t:a", "t:nothing", "t:b")),
    msetnx: await ask(r.msetnx({ "t:once": "1" })),
    exists: await ask(r.exists("t:a", "t:b", "t:nothing")),
    expire: await ask(r.expire("t:a", 100)),
    pexpire: await ask(r.pexpire("t:a", 100000)),
    persist: await ask(r.persist("t:a")),
    type: await ask(r.type("t:a")),
    touch: await ask(r.touch("t:a", "t:b")),
    scan: await scan(r),
    keys: await ask(r.keys("t:[ab]")),
    unlink: await ask(r.unlink("t:a")),
    del: await ask(r.del("t:b")),
    "an error": await ask(r.incr("t:text")),
  };
}

// The library's client of a cluster: where it finds slots, and that keys of all are there.
async function cluster(host, port) {
  const r = new Redis.Cluster([{ host, port: Number(port) }]);
  r.on("error", (error) => process.stderr.write(`${error}\n`));
  const all = Array.from({ length: 200 }, (_, n) => n);
  await Promise.all(all.map((n) => r.set(`c:${n}`, `${n}`)));
  const found = await Promise.all(all.map(async (n) => (await r.get(`c:${n}`)) === `${n}`));
  await r.multi().set("{c}:a", "1").set("{c}:b", "2").exec();
  say("cluster", {
    nodes: r.nodes("all").map((node) => `${node.options.host}:${node.options.port}`),
    found: found.filter(Boolean).length,
    tagged: await r.mget("{c}:a", "{c}:b"),
  });
  return r;
}

async function goOn(client) {
  const lines = readline.createInterface({ input: process.stdin });
  say("waiting", true);
  await new Promise((resolve) => lines.once("line", resolve));
  lines.close();
  // Waits in the library's own queue until it has reconnected.
  say("again", [await client.set("again", "1"), await client.get("again")]);
  client.disconnect();
}

async function main() {
  const [host, port, path, mode] = process.argv.slice(2);
  const script = JSON.parse(fs.readFileSync(path, "utf8"));
  say("client", `ioredis ${require("ioredis/package.json").version}`);
  if (mode === "cluster") return goOn(await cluster(host, port));
  const client = new Redis(Number(port), host);
  // It reconnects by itself; errors meanwhile are told here as well as to callers.
  client.on("error", (error) => process.stderr.write(`${error}\n`));
  for (const command of script.commands) {
    const [name, ...args] = bytes(command);
    say("reply", await ask(client.callBuffer(name.toString("latin1"), ...args)));
  }
  const pipeline = client.pipeline();
  for (const command of script.pipeline) {
    const [name, ...args] = bytes(command);
    pipeline.callBuffer(name.toString("latin1"), ...args);
  }
  const replies = await pipeline.exec();
  say("pipeline", replies.map(([error, reply]) => normal(error ?? reply)));
  say("typed", await typed(client));
  await goOn(client);
}

main().catch((error) => {
  process.stderr.write(`${error.stack}\n`);
  process.exit(1);
});
