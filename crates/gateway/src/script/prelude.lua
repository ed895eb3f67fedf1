-- What scripts see of Lua. `base` has what was made in Rust; `plain` makes of an error what a
-- script may see of it, or raises it again if nothing of the script goes on; `handle` makes of the
-- error that has ended a script what its reply says.
local base, plain, handle = ...

local collectgarbage, error, getmetatable, pairs = collectgarbage, error, getmetatable, pairs
local pcall, rep, resume, setmetatable = pcall, string.rep, coroutine.resume, setmetatable
local tostring, type, xpcall = tostring, type, xpcall

local function settle(ok, ...)
  if ok then return true, ... end
  return false, plain((...))
end

local function add(name, library)
  base[name] = base[name] or {}
  for key, value in pairs(library) do
    if base[name][key] == nil then base[name][key] = value end
  end
end

for _, name in pairs({
  "_VERSION", "assert", "error", "getmetatable", "ipairs", "next", "pairs", "rawequal", "rawget",
  "rawset", "select", "setmetatable", "tonumber", "tostring", "type", "unpack",
}) do
  base[name] = _G[name]
end

add("coroutine", coroutine)
add("math", math)
add("string", string)
add("table", table)
base.os = { clock = os.clock }
-- What compiled code is, nobody checks who loads it.
base.string.dump = nil

-- An error of a command is a table, of which `pcall` returns the text, as in Redis.
local function worded(ok, first, ...)
  if not ok and type(first) == "table" and type(first.err) == "string" then
    return false, first.err
  end
  return ok, first, ...
end

base.pcall = function(...) return worded(settle(pcall(...))) end
base.xpcall = function(f, handler)
  return settle(xpcall(f, function(raised) return handler(plain(raised)) end))
end
base.coroutine.resume = function(...) return settle(resume(...)) end
base.collectgarbage = function(what)
  if what == "count" then return collectgarbage("count") end
  return 0
end
-- Nothing, any number of times, takes for ever.
base.string.rep = function(text, count)
  if text == "" then return "" end
  return rep(text, count)
end

-- What strings have in common outlives a script.
getmetatable("").__metatable = false

local guard = {
  __index = function(_, name)
    error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2)
  end,
  __newindex = function() error("Attempt to modify a readonly table", 2) end,
  __metatable = false,
}

-- The globals of one script, which nobody sees who comes after it.
local function fresh()
  local globals = {}
  for name, value in pairs(base) do
    if type(value) == "table" then
      local library = {}
      for key, member in pairs(value) do library[key] = member end
      globals[name] = library
    else
      globals[name] = value
    end
  end
  globals._G = globals
  return globals
end

local function lock(globals) setmetatable(globals, guard) end

local function run(script) return xpcall(script, handle) end

return fresh, lock, run
