# Applications in Ruby, as Debian packages them, against a gateway; see ../README.md.

require "json"
require "active_support"
require "active_support/cache"
require "active_support/cache/redis_cache_store"

MANY = (0...10).to_h { |n| ["key-#{n}", "value #{n}"] }.freeze

# What an application is asked to do, and what became of each.
class Checks
  def initialize(name, version)
    # Later releases of the same series are the same here.
    @name = "#{name} #{version[/\A\d+\.\d+/]}"
    @done = []
  end

  # Notes whether the call did what it says: it returns whether that is so.
  def check(what)
    @done << [what, yield ? "works" : "lost"]
  rescue => error
    warn "#{@name}: #{what}: #{error.class}: #{error.message}"
    @done << [what, "refused"]
  end

  def say
    puts JSON.generate({ application: @name, checks: @done })
  end
end

# It says that it has not, by what it returns.
def told(done)
  raise "it says that it has not" unless done
end

def active_support(url)
  handler = ->(method:, returning:, exception:) { warn "#{method}: #{exception.message}" }
  cache = ActiveSupport::Cache::RedisCacheStore.new(
    url: url, namespace: "rails", error_handler: handler
  )
  c = Checks.new("ActiveSupport RedisCacheStore", ActiveSupport::VERSION::STRING)
  c.check("write, read, exist?") do
    told cache.write("a", { n: 1 }, expires_in: 100)
    cache.read("a") == { n: 1 } && cache.exist?("a")
  end
  c.check("write unless_exist") do
    told cache.write("b", 1, unless_exist: true, expires_in: 100)
    !cache.write("b", 2, unless_exist: true) && cache.read("b") == 1
  end
  c.check("fetch") do
    cache.fetch("f", expires_in: 100) { 7 } == 7 && cache.fetch("f") { 8 } == 7
  end
  c.check("fetch with race_condition_ttl") do
    cache.fetch("g", expires_in: 100, race_condition_ttl: 10) { 7 } == 7 && cache.read("g") == 7
  end
  c.check("a value of 10,000 bytes") do
    text = Random.new(1).bytes(10_000)
    told cache.write("big", text)
    cache.read("big") == text
  end
  c.check("increment, decrement") do
    cache.increment("n", 5, expires_in: 100) == 5 && cache.decrement("n", 2) == 3
  end
  c.check("write_multi for ever, read_multi") do
    cache.write_multi(MANY)
    cache.read_multi(*MANY.keys) == MANY
  end
  c.check("write_multi for a time, fetch_multi") do
    timed = MANY.transform_values { |value| "#{value} for a time" }
    cache.write_multi(timed, expires_in: 100)
    cache.fetch_multi(*MANY.keys) { "none" } == timed
  end
  c.check("delete, delete_multi") do
    cache.delete("a") && cache.delete_multi(MANY.keys) == MANY.size && !cache.exist?("key-3")
  end
  c.check("delete_matched") do
    cache.write_multi(MANY)
    cache.delete_matched("key-*")
    cache.read_multi(*MANY.keys).empty? && cache.exist?("b")
  end
  c.check("clear of a namespace") do
    cache.clear
    !cache.exist?("b")
  end
  c.check("clear") do
    whole = ActiveSupport::Cache::RedisCacheStore.new(url: url)
    told whole.write("c", 1)
    whole.clear
    !whole.exist?("c")
  end
  c.say
end

host, port = ARGV
active_support("redis://#{host}:#{port}")
