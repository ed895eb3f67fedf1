<?php
// Applications in PHP, as Debian packages them, against a gateway; see ../README.md.

require 'Symfony/Component/Cache/autoload.php';
require 'Symfony/Component/Lock/autoload.php';
require 'Illuminate/Redis/autoload.php';
require 'Illuminate/Cache/autoload.php';

use Illuminate\Cache\RateLimiter;
use Illuminate\Cache\RedisStore as LaravelStore;
use Illuminate\Cache\Repository;
use Illuminate\Redis\RedisManager;
use Symfony\Component\Cache\Adapter\AbstractAdapter;
use Symfony\Component\Cache\Adapter\RedisAdapter;
use Symfony\Component\Cache\Adapter\RedisTagAwareAdapter;
use Symfony\Component\Cache\Psr16Cache;
use Symfony\Component\Lock\LockFactory;
use Symfony\Component\Lock\Store\RedisStore as LockStore;

function many(string $value): array
{
    $many = [];
    for ($n = 0; $n < 10; $n++) {
        $many["key-$n"] = "$value $n";
    }
    return $many;
}

/** It says that it has not, as many methods do by what they return. */
function told(bool $done): void
{
    if (!$done) {
        throw new RuntimeException('it says that it has not');
    }
}

/** What an application is asked to do, and what became of each. */
final class Checks
{
    private string $name;
    private array $done = [];

    public function __construct(string $name, string $package)
    {
        // Later releases of the same series are the same here; no class knows its version.
        exec("dpkg-query --show --showformat='\${Version}' " . escapeshellarg($package), $version);
        preg_match('/^\d+\.\d+/', $version[0], $series);
        $this->name = "$name $series[0]";
    }

    /** Notes whether the call did what it says: it returns whether that is so. */
    public function check(string $what, callable $call): void
    {
        try {
            $result = $call() ? 'works' : 'lost';
        } catch (Throwable $error) {
            while ($error->getPrevious()) {
                $error = $error->getPrevious();
            }
            fwrite(STDERR, "$this->name: $what: {$error->getMessage()}\n");
            $result = 'refused';
        }
        $this->done[] = [$what, $result];
    }

    public function say(): void
    {
        echo json_encode(['application' => $this->name, 'checks' => $this->done]), "\n";
    }
}

function symfonyCache(string $url): void
{
    $pool = new RedisAdapter(AbstractAdapter::createConnection($url), 'symfony');
    $simple = new Psr16Cache($pool);
    $c = new Checks('Symfony Cache', 'php-symfony-cache');
    $c->check('get with a callback', function () use ($pool) {
        $found = $pool->get('a', fn () => ['n' => 1]) === ['n' => 1];
        return $found && $pool->get('a', fn () => 2) === ['n' => 1];
    });
    $c->check('save, hasItem, getItem', function () use ($pool) {
        told($pool->save($pool->getItem('b')->set('1')->expiresAfter(100)));
        return $pool->hasItem('b') && $pool->getItem('b')->get() === '1';
    });
    $c->check('saveDeferred, commit', function () use ($pool) {
        foreach (many('deferred') as $key => $value) {
            $pool->saveDeferred($pool->getItem($key)->set($value));
        }
        told($pool->commit());
        $found = [];
        foreach ($pool->getItems(array_keys(many(''))) as $key => $item) {
            $found[$key] = $item->get();
        }
        return $found == many('deferred');
    });
    $c->check('deleteItem', function () use ($pool) {
        told($pool->deleteItem('b'));
        return !$pool->hasItem('b');
    });
    $c->check('PSR-16: setMultiple for a time', function () use ($simple) {
        told($simple->setMultiple(many('simple'), 100));
        return [...$simple->getMultiple(array_keys(many('')))] == many('simple');
    });
    $c->check('PSR-16: deleteMultiple', function () use ($simple) {
        told($simple->deleteMultiple(array_keys(many(''))));
        return !$simple->has('key-0') && !$simple->has('key-9');
    });
    $c->check('clear of a prefix', function () use ($pool) {
        told($pool->clear('a'));
        return !$pool->hasItem('a');
    });
    $c->check('clear', function () use ($pool) {
        told($pool->save($pool->getItem('c')->set(1)) && $pool->clear());
        return !$pool->hasItem('c');
    });
    $c->say();
}

function symfonyTags(string $url): void
{
    $pool = new RedisTagAwareAdapter(AbstractAdapter::createConnection($url), 'tagged');
    $c = new Checks('Symfony Cache by tags', 'php-symfony-cache');
    $c->check('save without a tag', function () use ($pool) {
        told($pool->save($pool->getItem('a')->set(1)));
        return $pool->getItem('a')->get() === 1;
    });
    $c->check('save with a tag, invalidateTags', function () use ($pool) {
        told($pool->save($pool->getItem('b')->set(1)->tag('some')));
        told($pool->invalidateTags(['some']));
        return !$pool->hasItem('b');
    });
    $c->check('deleteItem', function () use ($pool) {
        told($pool->deleteItem('a'));
        return !$pool->hasItem('a');
    });
    $c->say();
}

function symfonyLock(string $url): void
{
    $locks = new LockFactory(new LockStore(AbstractAdapter::createConnection($url)));
    $c = new Checks('Symfony Lock', 'php-symfony-lock');
    $c->check('acquire, refresh, release', function () use ($locks) {
        $lock = $locks->createLock('lock', 10);
        told($lock->acquire());
        $lock->refresh(100);
        $held = !$locks->createLock('lock')->acquire() && $lock->getRemainingLifetime() > 90;
        $lock->release();
        return $held && $locks->createLock('lock')->acquire();
    });
    $c->say();
}

function laravelCache(string $host, string $port): Repository
{
    $servers = ['default' => ['host' => $host, 'port' => $port, 'database' => 0]];
    $manager = new RedisManager(null, 'phpredis', $servers);
    return new Repository(new LaravelStore($manager, 'laravel_cache'));
}

function laravel(string $host, string $port): void
{
    $cache = laravelCache($host, $port);
    $c = new Checks('Laravel cache', 'php-illuminate-cache');
    $c->check('put, get, has', function () use ($cache) {
        told($cache->put('a', ['n' => 1], 100));
        return $cache->get('a') === ['n' => 1] && $cache->has('a');
    });
    $c->check('remember, pull', function () use ($cache) {
        $found = $cache->remember('r', 100, fn () => 'one') === 'one';
        return $found && $cache->pull('r') === 'one' && !$cache->has('r');
    });
    $c->check('add', fn () => $cache->add('b', 'one', 100) && !$cache->add('b', 'two', 100));
    $c->check('increment, decrement', function () use ($cache) {
        return $cache->increment('n', 5) === 5 && $cache->decrement('n', 2) === 3;
    });
    $c->check('putMany for a time, many', function () use ($cache) {
        told($cache->putMany(many('put'), 100));
        return $cache->many(array_keys(many(''))) == many('put');
    });
    $c->check('putMany for ever, many', function () use ($cache) {
        told($cache->putMany(many('ever')));
        return $cache->many(array_keys(many(''))) == many('ever');
    });
    $c->check('forget', function () use ($cache) {
        told($cache->forget('a'));
        return !$cache->has('a');
    });
    $c->check('deleteMultiple', function () use ($cache) {
        told($cache->deleteMultiple(array_keys(many(''))));
        return !$cache->has('key-0') && !$cache->has('key-9');
    });
    $c->check('lock: get, release, another\'s', function () use ($cache) {
        $lock = $cache->lock('lock', 100);
        $held = $lock->get() && !$cache->lock('lock', 100)->get();
        $kept = !$cache->restoreLock('lock', 'another')->release();
        return $held && $kept && $lock->release() && $cache->lock('lock', 100)->get();
    });
    $c->check('RateLimiter: attempt', function () use ($cache) {
        $limiter = new RateLimiter($cache);
        $hits = [];
        for ($n = 0; $n < 5; $n++) {
            $hits[] = $limiter->attempt('somebody', 3, fn () => true, 1000);
        }
        return $hits === [true, true, true, false, false];
    });
    $c->check('flush', function () use ($cache) {
        told($cache->forever('c', 1) && $cache->flush());
        return !$cache->has('c');
    });
    $c->check('tags: put, get, flush', function () use ($host, $port) {
        $tagged = laravelCache($host, $port)->tags(['people']);
        told($tagged->put('a', 'one', 100));
        $found = $tagged->get('a') === 'one';
        told($tagged->flush());
        return $found && !$tagged->has('a');
    });
    $c->say();
}

[, $host, $port] = $argv;
symfonyCache("redis://$host:$port");
symfonyTags("redis://$host:$port");
symfonyLock("redis://$host:$port");
laravel($host, $port);
