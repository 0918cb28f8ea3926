-- Every item of a tree is an object to collect: with fewer collections a capture takes a third less time. Up to
-- 64 MiB may wait to be collected, so that little is lost where much is kept.
local function pace()
  local kept = collectgarbage("count")
  pcall(collectgarbage, "setpause", math.floor(math.min(1000, math.max(200, 100 * (kept + 65536) / kept))))
end
pace()
local calls = 0

local msmq = Proto("msmq", "Microsoft Message Queuing")

-- The fields, the readers of structures, and what is known of the packet that is being read: its values,
-- lengths, offsets, odd padding and starts of structures; runs of fields of fixed size.
local F, S, V, N, O, X, Z, C = {}, {}, {}, {}, {}, {}, {}, {}
-- The buffer and its bytes; the end of the bytes of a packet, its start, its announced end; an index in a list.
local B, D, L, P, PE, I = nil, "", 0, 0, 0, 0
local E = {path = "", at = 0, why = ""} -- why the last packet was refused

local huge, floor, ceil, min = math.huge, math.floor, math.ceil, math.min
local sub, find, byte, format = string.sub, string.find, string.byte, string.format
local unpack = Struct.unpack
local range, add, add_le, set_len = Tvb.range, TreeItem.add, TreeItem.add_le, TreeItem.set_len

-- Refuses the bytes of a packet; `size` tells that a size in them reaches too far.
local function fail(path, at, why, size)
  if find(path, "[]", 1, true) then path = path:gsub("%[%]", format("[%d]", I)) end
  E.path, E.at, E.why, E.size, E.part, E.need = path, at - P, why, size, nil, nil
  return nil
end

-- Refuses a part that does not fit: by the field that announces its length, if the announced end is in the way.
local function short(p, n, e, path, blamed, at)
  if p + n <= e then
    fail(path, L, "the data ends before")
  elseif blamed then
    fail(blamed, at, "it would take", true)
  else
    fail(path, min(e, L), "it takes")
  end
  E.part, E.need = path, n
  return nil
end

-- Why the last packet was refused.
local function refusal()
  local why = E.need and format("%s %.0f bytes of %s, which are not there", E.why, E.need, E.part) or E.why
  return format("%s, byte %d: %s", E.path, E.at, why)
end

-- Refuses a run of fields that does not fit, and shows those that do.
local function cut(p, e, t, fields)
  local m = min(e, L)
  for _, f in ipairs(fields) do
    if p + f[1] > m then return short(p, f[1], e, f[2]) end
    if t then add_le(t, f[3], range(B, p, f[1])) end
    p = p + f[1]
  end
end

-- The offset of the first null character of a text, or nil.
local function find_null(p, stop)
  local at = find(D, "\0\0", p + 1, true)
  while at and at < stop do
    if (at - 1 - p) % 2 == 0 then return at - 1 end
    at = find(D, "\0\0", at + 1, true)
  end
  return nil
end

local function ends_on_null(p, n)
  return n >= 2 and n % 2 == 0 and sub(D, p + n - 1, p + n) == "\0\0"
end

-- Whether bytes are UTF-16 with a null at their end and nowhere else.
local function is_text(p, n)
  if not ends_on_null(p, n) or find_null(p, p + n) ~= p + n - 2 then return false end
  local text = sub(D, p + 1, p + n - 2)
  local at = find(text, "[\216-\223]")
  while at do
    if at % 2 == 1 then
      at = find(text, "[\216-\223]", at + 1)
    else
      local low = byte(text, at + 2) or 0
      if byte(text, at) >= 220 or low < 220 or low > 223 then return false end
      at = find(text, "[\216-\223]", at + 3)
    end
  end
  return true
end

-- Chooses between two lengths of a text: the first that is well-formed, that ends on a null, or at all.
local function chosen(p, n, other, m)
  local first = p + n <= m and ends_on_null(p, n)
  local second = p + other <= m and ends_on_null(p, other)
  if first and is_text(p, n) then return n end
  if second and is_text(p, other) then return other end
  return (first or not second) and n or other
end

-- The text in UTF-8; there must be one.
local function text_of(p, n)
  return n > 2 and range(B, p, n - 2):le_ustring() or ""
end

local function add_text(t, field, ill_formed, p, n)
  if is_text(p, n) then
    add(t, field, range(B, p, n), text_of(p, n))
  else
    add(t, ill_formed, range(B, p, n))
  end
end

local extra = {
  packet = ProtoField.string("msmq.packet", "Packet", base.ASCII, "Name of the packet, or Malformed, or Skipped."),
  path = ProtoField.string("msmq.malformed.path", "Path", base.ASCII, "The field that makes a packet malformed."),
  offset = ProtoField.uint32("msmq.malformed.offset", "Offset", base.DEC, nil, nil, "Its byte in the packet."),
  skipped = ProtoField.bytes("msmq.skipped", "Skipped", base.NONE, "Bytes that are in no packet."),
  body_format = ProtoField.string("msmq.body.format", "Body format", base.ASCII, "What is inside of a body: xml, json, nrbf."),
  body_text = ProtoField.string("msmq.body.text", "Body text", base.UNICODE, "The beginning of its text."),
  headers_format = ProtoField.string("msmq.headers.format", "Headers", base.ASCII, "Whose headers are in the extension."),
}
local expert_malformed = ProtoExpert.new(
  "msmq.malformed", "Malformed packet", expert.group.MALFORMED, expert.severity.ERROR)
local expert_skipped = ProtoExpert.new(
  "msmq.skipped.expert", "Bytes that are in no packet", expert.group.MALFORMED, expert.severity.WARN)
local experts = {expert_malformed, expert_skipped}

-- The rules of each kind of packet; their expert items, ids and titles, by number; the numbers by id.
local J, K, ids, titles, number_of = {}, {}, {}, {}, {}
extra.finding = ProtoField.string("msmq.finding.id", "Finding", base.ASCII, "The requirement that is broken.")
extra.finding_path = ProtoField.string("msmq.finding.path", "Path", base.ASCII, "The field that breaks it.")

local function finding(name, id, title, group, severity)
  local number = #K + 1
  K[number], ids[number], titles[number] = ProtoExpert.new(name, title, group, severity), id, title
  number_of[id] = number_of[id] or number
  experts[#experts + 1] = K[number]
end

-- Whether a byte of some is not 0.
local function any_set(p, n)
  return n > 0 and find(sub(D, p + 1, p + n), "[^\0]") ~= nil
end

-- The number in four bytes; 0 if they are not there.
local function uint32(p)
  return p + 4 <= #D and unpack("<I4", D, p + 1) or 0
end

@DECLARATIONS@
-- Whether there is a tree: without one, nothing needs to be added to it.
local function shown(root)
  return not find(tostring(root), "has item=false", 1, true)
end

-- Whether a field may be asked for. In a tree that is not seen, only those of filters are: they are the same for
-- a pass over the frames, so that not every call looks for them.
local all_fields = {}
local asked = {frame = nil, visited = nil, calls = 0, value = true}

local function wanted(root, pinfo)
  if root.visible then
    asked.frame = nil
    return true
  end
  local frame, visited = pinfo.number, pinfo.visited
  asked.calls = asked.calls + 1
  if not asked.frame or frame < asked.frame or visited ~= asked.visited or asked.calls % 64 == 0 then
    asked.value = false
    for _, field in ipairs(all_fields) do
      if root:referenced(field) then
        asked.value = true
        break
      end
    end
  end
  asked.frame, asked.visited = frame, visited
  return asked.value
end

-- The frames that a packet is linked with, in the order in which they are shown.
local link, link_order = {}, {}
for _, one in ipairs({
  {"request_in", "Request in", frametype.REQUEST},
  {"response_in", "Response in", frametype.RESPONSE},
  {"acknowledges", "Acknowledges up to the message in", frametype.ACK},
  {"acknowledged_in", "Acknowledged in", frametype.ACK},
  {"message_in", "Acknowledges the message in", frametype.ACK},
  {"order_ack_in", "OrderAck in", frametype.ACK},
  {"final_ack_in", "FinalAck in", frametype.ACK},
  {"administration_in", "Administration acknowledgement in", frametype.ACK},
  {"answers", "Answers the message in", frametype.REQUEST},
  {"answered_in", "Answered in", frametype.RESPONSE},
}) do
  local name = one[1]
  link[name] = ProtoField.framenum("msmq.link." .. name, one[2], base.NONE, one[3])
  link_order[#link_order + 1] = name
  extra["link_" .. name] = link[name]
end
