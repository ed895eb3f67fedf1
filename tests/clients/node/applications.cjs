// Applications in JavaScript, as they come, against a gateway; see ../README.md.
"use strict";

const { readFileSync } = require("node:fs");
const { dirname, join } = require("node:path");
const { default: KeyvRedis } = require("@keyv/redis");
const { Queue } = require("bullmq");
const { createCache } = require("cache-manager");
const { Redis } = require("ioredis");
const { default: Keyv } = require("keyv");
const { RateLimiterRedis } = require("rate-limiter-flexible");
const Redlock = require("redlock");

// A package's version; not each of them lets its package.json be asked for by name.
function version(name) {
  let folder = dirname(require.resolve(name));
  while (!folder.endsWith(join("node_modules", name))) folder = dirname(folder);
  return JSON.parse(readFileSync(join(folder, "package.json"), "utf8")).version;
}

const KEYS = Array.from({ length: 10 }, (_, n) => `key-${n}`);
const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

// What an application is asked to do, and what became of each.
class Checks {
  constructor(name) {
    this.name = name;
    this.done = [];
  }

  // Notes whether the call did what it says: it returns whether that is so.
  async check(what, call) {
    try {
      this.done.push([what, (await call()) ? "works" : "lost"]);
    } catch (error) {
      process.stderr.write(`${this.name}: ${what}: ${error}\n`);
      this.done.push([what, "refused"]);
    }
  }

  say() {
    process.stdout.write(`${JSON.stringify({ application: this.name, checks: this.done })}\n`);
  }
}

const entries = (ttl) => KEYS.map((key) => ({ key, value: `${key} for ${ttl}`, ttl }));

async function keyv(url, options, named) {
  const store = new Keyv({ store: new KeyvRedis(url, options), namespace: named, ...options });
  store.on("error", (error) => process.stderr.write(`Keyv told of ${error}\n`));
  const c = new Checks(`Keyv ${version("keyv")}, @keyv/redis ${version("@keyv/redis")}${
    options.throwOnErrors ? ", throwOnErrors" : ""}`);
  const many = async (ttl) => {
    const done = await store.setMany(entries(ttl));
    const found = await store.getMany(KEYS);
    const stored = same(found, entries(ttl).map((entry) => entry.value));
    // If it says that it has not, nothing is lost without a word.
    if (!stored && same(done, KEYS.map(() => false))) throw new Error("setMany says false");
    return stored;
  };
  await c.check("set, get, has", async () => {
    await store.set("a", { n: 1 }, 60000);
    return same(await store.get("a"), { n: 1 }) && (await store.has("a"));
  });
  await c.check("setMany for ever", () => many(undefined));
  await c.check("setMany for a time", () => many(100000));
  await c.check("delete", async () => (await store.delete("a")) && !(await store.has("a")));
  await c.check("deleteMany", async () => {
    for (const key of KEYS) await store.set(key, 1);
    await store.deleteMany(KEYS);
    return same(await store.getMany(KEYS), KEYS.map(() => null));
  });
  await c.check("clear", async () => {
    await store.set("b", 1);
    await store.clear();
    return (await store.get("b")) === undefined;
  });
  await store.disconnect();
  c.say();
}

async function cacheManager(url) {
  const store = new Keyv({ store: new KeyvRedis(url), namespace: "manager" });
  store.on("error", (error) => process.stderr.write(`Keyv told of ${error}\n`));
  const cache = createCache({ stores: [store] });
  const c = new Checks(`cache-manager ${version("cache-manager")} on Keyv`);
  await c.check("set, get", async () => {
    await cache.set("a", 1, 60000);
    return (await cache.get("a")) === 1;
  });
  await c.check("wrap", async () => {
    await cache.wrap("w", () => 7, 60000);
    return (await cache.wrap("w", () => 8, 60000)) === 7;
  });
  await c.check("mset for a time", async () => {
    await cache.mset(entries(100000));
    const wanted = entries(100000).map((entry) => entry.value);
    return same(await cache.mget(KEYS), wanted);
  });
  await c.check("mdel", async () => {
    for (const key of KEYS) await cache.set(key, 1, 60000);
    await cache.mdel(KEYS);
    return (await cache.mget(KEYS)).every((value) => value === undefined || value === null);
  });
  await c.check("clear", async () => {
    await cache.clear();
    return (await cache.get("a")) === undefined;
  });
  await cache.disconnect();
  c.say();
}

async function locks(host, port) {
  const clients = Array.from({ length: 4 }, () => new Redis(port, host));
  const lockers = clients.map((client) =>
    new Redlock([client], { retryCount: 500, retryDelay: 5, retryJitter: 5 }));
  const [client] = clients;
  const [locker] = lockers;
  const c = new Checks(`redlock ${version("redlock")}`);
  await c.check("twenty times, by four clients", async () => {
    let done = 0;
    await Promise.all(lockers.map(async (own) => {
      for (let n = 0; n < 5; n += 1) {
        const lock = await own.lock("redlock", 10000);
        const seen = done;
        await new Promise((resolve) => setTimeout(resolve, 2));
        done = seen + 1;
        await lock.unlock();
      }
    }));
    return done === 20;
  });
  await c.check("extend, unlock", async () => {
    const lock = await (await locker.lock("extended", 1000)).extend(100000);
    const longer = (await client.pttl("extended")) > 90000;
    await lock.unlock();
    return longer && (await client.exists("extended")) === 0;
  });
  await c.check("unlock of a lock that is another's", async () => {
    const lock = await locker.lock("lost", 100000);
    await client.set("lost", "another's");
    const refused = await lock.unlock().then(() => false, () => true);
    return refused && (await client.get("lost")) === "another's";
  });
  clients.forEach((own) => own.disconnect());
  c.say();
}

async function limiter(host, port) {
  const client = new Redis(port, host);
  const limits = new RateLimiterRedis({ storeClient: client, points: 3, duration: 1000 });
  const c = new Checks(`rate-limiter-flexible ${version("rate-limiter-flexible")}`);
  await c.check("consume", async () => {
    const left = [];
    for (let n = 0; n < 4; n += 1) {
      left.push(await limits.consume("somebody").then((it) => it.remainingPoints, () => "no more"));
    }
    return same(left, [2, 1, 0, "no more"]);
  });
  await c.check("block, reward, delete", async () => {
    await limits.reward("somebody", 2);
    const rewarded = (await limits.get("somebody")).consumedPoints === 2;
    await limits.block("somebody", 100);
    const blocked = await limits.consume("somebody").then(() => false, () => true);
    return rewarded && blocked && (await limits.delete("somebody"));
  });
  client.disconnect();
  c.say();
}

async function bullmq(host, port) {
  const queue = new Queue("work", { connection: { host, port: Number(port) } });
  queue.on("error", (error) => process.stderr.write(`BullMQ told of ${error}\n`));
  const c = new Checks(`BullMQ ${version("bullmq")}`);
  await c.check("add, getJob", async () => {
    const job = await queue.add("task", { n: 1 });
    return same((await queue.getJob(job.id)).data, { n: 1 });
  });
  await queue.close();
  c.say();
}

async function main() {
  const [host, port] = process.argv.slice(2);
  const url = `redis://${host}:${port}`;
  await keyv(url, {}, "plain");
  await keyv(url, { throwOnErrors: true }, "throwing");
  await cacheManager(url);
  await locks(host, port);
  await limiter(host, port);
  await bullmq(host, port);
}

main().catch((error) => {
  process.stderr.write(`${error.stack}\n`);
  process.exit(1);
});
