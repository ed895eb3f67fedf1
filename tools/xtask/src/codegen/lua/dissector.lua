-- From here on nothing is generated: it goes through packets by the tables above.

local keyway = Proto("keyway", "Keyway")
local opaque = ProtoField.bytes("keyway.left", "left")
local fields, protofields = {}, { opaque }
local missing = ProtoExpert.new("keyway.missing", "The datagram ends before this",
  expert.group.MALFORMED, expert.severity.ERROR)
keyway.experts = { missing }

-- The field of Wireshark by the name `abbr`, made when it is first asked for.
local function protofield(abbr, make)
  if not fields[abbr] then
    fields[abbr] = make("keyway." .. abbr)
    protofields[#protofields + 1] = fields[abbr]
  end
  return fields[abbr]
end

local UNSIGNED = {
  ProtoField.uint8, ProtoField.uint16, nil, ProtoField.uint32, [8] = ProtoField.uint64,
}

local function define(prefix, field)
  field.proto = protofield(prefix .. field.name, function(abbr)
    if field.shown == "ids" then
      return ProtoField.uint16(abbr, field.name, base.DEC, nil, nil, field.doc)
    elseif field.shown == "address" then
      return ProtoField.ipv6(abbr, field.name, field.doc)
    elseif field.shown == "named" then
      return ProtoField.uint8(abbr, field.name, base.HEX, field.names, nil, field.doc)
    elseif field.shown == "signed" then
      return ProtoField.int64(abbr, field.name, base.DEC, nil, nil, field.doc)
    elseif not UNSIGNED[field.size] then
      return ProtoField.bytes(abbr, field.name, base.NONE, field.doc)
    end
    local form = (field.shown == "hex" or field.shown == "bits") and base.HEX or base.DEC
    return UNSIGNED[field.size](abbr, field.name, form, nil, nil, field.doc)
  end)
  for _, flag in ipairs(field.bits or {}) do
    flag.proto = protofield(prefix .. field.name .. "." .. flag.name:lower(), function(abbr)
      return ProtoField.bool(abbr, flag.name, 8, nil, 2 ^ flag.bit)
    end)
  end
end

local function define_parts(parts)
  for _, part in ipairs(parts) do
    if part.bytes then
      local bytes = function(abbr) return ProtoField.bytes(abbr, part.bytes) end
      part.proto = protofield(part.bytes, bytes)
    end
  end
end

-- First, since bytes may have the name of a body, and then show what they are.
for _, form in pairs(FORMS) do define_parts(form.parts) end
for _, row in ipairs(PAYLOADS) do define_parts(row.parts) end
local by_name = {}
for _, field in ipairs(HEADER) do
  define("", field)
  by_name[field.name] = field
  if field.rest then
    field.rest.shown = "ids"
    define("", field.rest)
  end
end
for name, form in pairs(FORMS) do
  form.name = name
  for _, field in ipairs(form) do define(name .. ".", field) end
  form.proto = protofield(name, function(abbr) return ProtoField.none(abbr, name) end)
end
keyway.fields = protofields

-- Whether all bits of `mask` are set in a byte, or none of them. Without a library of bits, which
-- versions of Lua have under different names.
local function bits(byte, mask, wanted)
  for bit = 0, 7 do
    if math.floor(mask / 2 ^ bit) % 2 == 1 and math.floor(byte / 2 ^ bit) % 2 ~= wanted then
      return false
    end
  end
  return true
end

local function is_zero(range)
  for at = 0, range:len() - 1 do
    if range(at, 1):uint() ~= 0 then return false end
  end
  return true
end

-- A header: its bytes, and whether it is on its last way, to the reply address.
local Header = {}
Header.__index = Header

function Header:of(name)
  local field = by_name[name]
  return self.tvb(field.at, field.size)
end

local function row_holds(header, row)
  if row.ops and not row.ops[header.op] then return false end
  if row.codes and not row.codes[header.code] then return false end
  if row.codes_from and header.code < row.codes_from then return false end
  if row.hop and not bits(header.hop_flags, row.hop, 1) then return false end
  if row.hop_clear and not bits(header.hop_flags, row.hop_clear, 0) then return false end
  if row.flags and not bits(header.flags, row.flags, 1) then return false end
  for _, name in ipairs(row.zero or {}) do
    if not is_zero(header:of(name)) then return false end
  end
  return row.delivered == nil or row.delivered == header.delivered
end

function Header:holds(rows)
  if not self.whole then return false end
  for _, row in ipairs(rows) do
    if row_holds(self, row) then return true end
  end
  return false
end

local function used(header, field)
  local count = field.count and by_name[field.count]
  if not count or count.at + count.size > header.tvb:len() then return field.size end
  return math.min(field.size, 2 * header:of(field.count):uint())
end

local function is_covered(header, field, size)
  for _, over in ipairs(HEADER) do
    if over.when and over.at < field.at + size and field.at < over.at + over.size
        and header:holds(over.when) then
      return true
    end
  end
  return false
end

local function show(header, tree, field, range)
  if field.shown == "ids" then
    for at = 0, range:len() - 2, 2 do
      -- 65535 is nobody's.
      if range(at, 2):uint() ~= 0xffff then tree:add(field.proto, range(at, 2)) end
    end
    return
  end
  local item = tree:add(field.proto, range)
  for _, flag in ipairs(field.bits or {}) do
    if not flag.ops or flag.ops[header.op] then item:add(flag.proto, range) end
  end
end

local function show_header(header, tree)
  for _, field in ipairs(HEADER) do
    if field.at + field.size > header.tvb:len() then
      tree:add_proto_expert_info(missing, field.name)
      return
    end
    local size = used(header, field)
    local shown
    if field.when then
      shown = header:holds(field.when)
    else
      shown = not is_covered(header, field, size)
    end
    if shown then
      if size > 0 then show(header, tree, field, header.tvb(field.at, size)) end
      if field.rest and size < field.size and header:holds(field.rest.when) then
        show(header, tree, field.rest, header.tvb(field.at + size, field.size - size))
      end
    end
  end
end

-- A payload that is gone through: `at` is where the rest begins, `ends` where it ends.
local Walk = {}
Walk.__index = Walk

-- A field of the body that the parts at hand belong to, or of the first one after it that has one.
function Walk:in_bodies(name)
  for n = self.level, #self.seen do
    for _, field in ipairs(self.seen[n].form) do
      if field.name == name then return self.seen[n].range(field.at, field.size):uint() end
    end
  end
end

function Walk:number(name)
  return self:in_bodies(name) or self.header:of(name):uint()
end

function Walk:is_one(fields)
  for name, values in pairs(fields) do
    if not values[self:in_bodies(name)] then return false end
  end
  return true
end

function Walk:has(part)
  return (not part.when or self.header:holds(part.when))
    and (not part.having or self:is_one(part.having))
    and not (part.unless and self:is_one(part.unless))
end

function Walk:left(tree)
  if self.at < self.ends then tree:add(opaque, self.tvb(self.at, self.ends - self.at)) end
  self.at = self.ends
end

local function printable(range)
  local text = range:raw()
  return not text:find("[^\32-\126]") and text
end

-- Shows as many bytes as there are; false if those are too few.
function Walk:bytes(tree, part, len)
  local there = math.min(len, self.ends - self.at)
  local range = self.tvb(self.at, there)
  local item = tree:add(part.proto, range)
  local text = there > 0 and printable(range)
  if text then
    item:append_text(" \"" .. text .. "\"")
    if part.bytes == "key" and not self.key then self.key = text end
  end
  self.at = self.at + there
  if there < len then tree:add_proto_expert_info(missing, part.bytes) end
  return there == len
end

function Walk:form(tree, form)
  if self.at + form.len > self.ends then
    tree:add_proto_expert_info(missing, form.name)
    return false
  end
  local range = self.tvb(self.at, form.len)
  self.at = self.at + form.len
  local outer = self.level
  self.level = #self.seen + 1
  self.seen[self.level] = { form = form, range = range }
  local item = tree:add(form.proto, range)
  for _, field in ipairs(form) do
    show(self.header, item, field, range(field.at, field.size))
  end
  local begins = range:offset()
  local ended = self:parts(item, form.parts)
  self.level = outer
  item:set_len(self.at - begins)
  return ended
end

function Walk:each(tree, part)
  local times = part.times and self:number(part.times)
  while times and times > 0 or not times and self.at < self.ends do
    times = times and times - 1
    local fitting
    for _, name in ipairs(part.each) do
      local kinds = FORMS[name].kinds
      local fits = not kinds or self.at < self.ends and kinds[self.tvb(self.at, 1):uint()]
      if fits and not fitting then fitting = FORMS[name] end
    end
    if not fitting or not self:form(tree, fitting) then return false end
  end
  return true
end

function Walk:part(tree, part)
  if part.form then return self:form(tree, FORMS[part.form]) end
  if part.each then return self:each(tree, part) end
  if not part.lens then
    return self:bytes(tree, part, part.len and self:number(part.len) or self.ends - self.at)
  end
  for n = 1, #self.seen do
    local seen = self.seen[n]
    if seen.form.name == part.lens and not self:bytes(tree, part, seen.range:uint()) then
      return false
    end
  end
  return true
end

function Walk:parts(tree, parts)
  for _, part in ipairs(parts) do
    if self:has(part) and not self:part(tree, part) then return false end
  end
  return true
end

function Walk:payload(tree)
  local len = self.header:of("payload_len"):uint()
  local all = self.ends
  local ends = math.min(HEADER_LEN + len, all)
  local whole = ends == HEADER_LEN + len
  local tail
  for _, form in pairs(FORMS) do
    if whole and form.tail and self.header:holds(form.tail) then tail = form end
  end
  self.ends = math.max(self.at, ends - (tail and tail.len or 0))
  local row
  for _, one in ipairs(PAYLOADS) do
    if not row and self.header:holds(one.when) then row = one end
  end
  local ended = self:parts(tree, row and row.parts or {})
  if ended then
    self:left(tree)
    self.ends = ends
    ended = not tail or self:form(tree, tail)
  end
  if ended and not whole then tree:add_proto_expert_info(missing, "payload") end
  self:left(tree)
  self.ends = all
  self:left(tree)
end

-- Whether a datagram of these ends is on its last way.
local function is_delivered(header, pinfo)
  local addr = header:of("reply_addr")
  local mapped = is_zero(addr(0, 10)) and addr(10, 2):uint() == 0xffff
  local to = mapped and addr(12, 4):ipv4() or addr:ipv6()
  return pinfo.dst == to and pinfo.dst_port == header:of("reply_port"):uint()
end

-- The envelope before a packet: how long it is, 0 if there is none.
local function envelope_len(tvb)
  local is_in_one = tvb:len() >= 2 and tvb(0, 2):uint() == ENVELOPE_MAGIC
  return is_in_one and math.min(tvb:len(), FORMS.envelope.len) or 0
end

local function is_ours(tvb)
  return tvb:len() >= 2 and (tvb(0, 2):uint() == MAGIC or envelope_len(tvb) > 0)
end

local function show_envelope(tvb, tree)
  local form = FORMS.envelope
  if tvb:len() < form.len then
    tree:add_proto_expert_info(missing, form.name)
    return
  end
  local item = tree:add(form.proto, tvb())
  for _, field in ipairs(form) do show({}, item, field, tvb(field.at, field.size)) end
end

-- Bytes of the first datagram: all, unless another begins where the header says that it ends.
local function one_len(tvb)
  local before = envelope_len(tvb)
  if tvb:len() < before + HEADER_LEN then return tvb:len() end
  local field = by_name.payload_len
  local len = before + HEADER_LEN + tvb(before + field.at, field.size):uint()
  return len < tvb:len() and is_ours(tvb(len):tvb()) and len or tvb:len()
end

local function show_one(tvb, pinfo, tree)
  local item = tree:add(keyway, tvb())
  local before = envelope_len(tvb)
  if before > 0 then
    show_envelope(tvb(0, before):tvb(), item)
    if before == tvb:len() then
      local info = before < FORMS.envelope.len and "cut short" or "cookie"
      item:append_text(", " .. info)
      return info
    end
    tvb = tvb(before):tvb()
  end
  local header = setmetatable({ tvb = tvb, whole = tvb:len() >= HEADER_LEN }, Header)
  local info = "cut short"
  if header.whole then
    for _, name in ipairs({ "op", "code", "hop_flags", "flags" }) do
      header[name] = header:of(name):uint()
    end
    header.delivered = is_delivered(header, pinfo)
    info = FAMILIES.op[header.op] or string.format("op %#04x", header.op)
  end
  show_header(header, item)
  if header.whole then
    local walk = { tvb = tvb, header = header, at = HEADER_LEN, ends = tvb:len(), seen = {},
      level = 1 }
    setmetatable(walk, Walk):payload(item)
    if walk.key then info = info .. " " .. walk.key end
    if header.code > 0 then info = info .. " " .. (FAMILIES.code[header.code] or header.code) end
  end
  item:append_text(", " .. info)
  return info
end

-- One datagram, or several where the kernel had not cut yet what it was given at once.
function keyway.dissector(tvb, pinfo, tree)
  if not is_ours(tvb) then return 0 end
  pinfo.cols.protocol = "Keyway"
  local infos, at, more = {}, 0, 0
  while at < tvb:len() do
    local len = one_len(tvb(at):tvb())
    local info = show_one(tvb(at, len):tvb(), pinfo, tree)
    at = at + len
    if #infos < 3 then infos[#infos + 1] = info else more = more + 1 end
  end
  if more > 0 then infos[#infos + 1] = more .. " more" end
  pinfo.cols.info = table.concat(infos, "; ")
  return tvb:len()
end

DissectorTable.get("udp.port"):add(PORT, keyway)
keyway:register_heuristic("udp", function(tvb, pinfo, tree)
  return keyway.dissector(tvb, pinfo, tree) > 0
end)
