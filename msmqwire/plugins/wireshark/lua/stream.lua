-- Finding packets in the bytes of a connection, as `msmqwire.analysis.dissection` does, as far as they are there.

local packet_size_max = @PACKET_SIZE_MAX@

-- Whether a packet could begin at an offset, as far as the bytes go; and its length, if that is known.
local function begins_packet(at, size)
  if byte(D, at + 1) ~= @VERSION@ then return false end
  local signature = sub(D, at + @SIGNATURE_OFFSET@ + 1, min(at + @SIGNATURE_END@, size))
  if signature ~= sub(@SIGNATURE_BYTES@, 1, #signature) then return false end
  if size - at < @PREFIX_SIZE@ then return true end
  local packet_size = unpack("<I4", D, at + @PACKET_SIZE_OFFSET@ + 1)
  if packet_size < @PACKET_SIZE_MIN@ or packet_size > packet_size_max then return false, packet_size end
  local bits = byte(D, at + @FLAGS_OFFSET@ + 1)
  local internal = floor(bits / @INTERNAL_BIT@) % 2 == 1
  if not internal and floor(bits / @SESSION_HEADER_BIT@) % 2 == 1 then
    return true, packet_size + @SESSION_HEADER_SIZE@
  end
  return true, packet_size
end

-- Ranges that were read in vain: of about the same size, no more than four may have a byte in common.
local failed, none_failed = {}, true

local function magnitude(size)
  local bits = 0
  while size >= 1 do size, bits = floor(size / 2), bits + 1 end
  return bits
end

local function admit(at, stop)
  if none_failed then return true end
  local count = 0
  for _, other in ipairs(failed[magnitude(stop - at)] or {}) do
    if other > at then count = count + 1 end
  end
  return count < 4
end

local function add_failed(at, stop)
  local bits, kept = magnitude(stop - at), {stop}
  none_failed = false
  for _, other in ipairs(failed[bits] or {}) do
    if other > at then kept[#kept + 1] = other end
  end
  failed[bits] = kept
end

-- The offset of the next header from an offset on; nil if there is none.
local function find_header(at, size)
  local mark = find(D, @SIGNATURE_BYTES@, at + @SIGNATURE_OFFSET@ + 1, true)
  while mark and mark < size do
    local header = mark - 1 - @SIGNATURE_OFFSET@
    if begins_packet(header, size) then return header end
    mark = find(D, @SIGNATURE_BYTES@, mark + 1, true)
  end
  return nil
end

local function certain(at, stop)
  if stop - at < @LEAST@ or not admit(at, stop) then return false end
  local name = read(at, stop, nil)
  if name and (internal_names[name] or unexplained_tail() == 0) then return true end
  add_failed(at, stop)
  return false
end

-- Headers that were looked at in vain in the present buffer, and how many may be.
local checked, checked_max = 0, 0

-- The offset of the next packet that is certain, or of one whose end is not there yet; and which of the two.
local function search(at, size)
  local header = find_header(at, size)
  while header and checked < checked_max do
    checked = checked + 1
    local _, length = begins_packet(header, size)
    if not length or header + length > size then return header, false end
    if certain(header, header + length) then return header, true end
    header = find_header(header + 1, size)
  end
  for start = size - @PREFIX_SIZE@ + 1, size - @SIGNATURE_OFFSET@ - 1 do
    if start >= at and begins_packet(start, size) then return start, false end
  end
  return nil, false
end

local function may_hide_packet(p, n)
  local stop = p + n
  local header = find_header(p, stop)
  if header then return true end
  for at = math.max(p, stop - @SIGNATURE_END@ + 1), stop - 1 do
    if begins_packet(at, stop) then return true end
  end
  return false
end

-- Where a malformed or doubtful packet ends: at its announced end, unless no packet follows there and one that
-- is certain begins earlier.
local function end_of_bad(stop, start, size)
  if stop >= size or begins_packet(stop, size) then return stop end
  local header, sure = search(start, size)
  return sure and header < stop and header or stop
end

local function skip(at, stop, root, tree, why)
  local item = item_of(at, stop, tree, format("%d bytes skipped", stop - at), "Skipped")
  if item then add(item, extra.skipped, range(B, at, stop - at)) end
  (item or root):add_proto_expert_info(expert_skipped, why)
end

-- Says why the bytes of an item are malformed; `again` if that is still to be found out.
local function condemn(at, stop, root, item, again)
  if again and read(at, stop, nil) then
    P = at
    fail("BaseHeader.PacketSize", at + @PACKET_SIZE_OFFSET@, "another size than that of its packet")
  end
  blame(at, stop, root, item)
  judge_malformed(at, stop, root, item)
end

-- Shows bytes that are malformed: what of them can be read, if `readable`.
local function show_malformed(at, stop, root, tree, readable)
  local item = item_of(at, stop, tree, "malformed", "Malformed")
  if readable and item then read(at, stop, item) end
  condemn(at, stop, root, item, readable)
end

-- Shows the packet at an offset, all of whose bytes are there; returns where it ends, and its name.
local function show_packet(at, stop, size, root, tree, pinfo)
  local announced = stop
  local item = tree and add(tree, msmq, range(B, at, stop - at)) or nil
  local name = read(at, stop, item)
  if not name then
    add_failed(at, stop)
    stop = end_of_bad(stop, at + @BASE_HEADER_SIZE@, size)
  else
    local p, n = @V:TrailingData@, @N:TrailingData@
    if not internal_names[name] and n > 0 and may_hide_packet(p, n) then
      stop = end_of_bad(stop, p, size)
      if stop < announced then add_failed(at, announced) else read(at, stop, nil) end
    end
  end
  if not name or stop < announced then
    if item then
      set_len(item, stop - at)
      entitle(item, at, stop, "malformed", "Malformed")
    end
    condemn(at, stop, root, item, true)
    return stop, "Malformed"
  end
  if item then entitle(item, at, stop, name, name) end
  after_packet(at, name, item, pinfo)
  count_packet(name, pinfo)
  judge(name, at, stop, root, item)
  if item and name == "UserMessage" then
@IN_MESSAGES@    show_body(item)
  end
  return stop, name
end

-- Malformed packets that are shown of one buffer, each by itself.
local malformed_max = 16

-- Dissects the bytes of a segment, or of several of them that were put together.
local function dissect_stream(tvb, pinfo, root)
  local there = shown(root)
  local tree = there and wanted(root, pinfo) and root or nil
  calls = calls + 1
  if calls % 1024 == 0 then pace() end
  B, D = tvb, tvb:raw()
  if not none_failed then failed, none_failed = {}, true end
  local at, size = 0, #D
  checked, checked_max = 0, 32 + floor(size / 1024)
  local whole = size == tvb:reported_len() and pinfo.can_desegment > 0
  local names, count, lost, from, wait, bad = {}, 0, nil, 0, nil, 0
  while at < size do
    local begins, length = begins_packet(at, size)
    local stop, name
    if not lost and begins and length and at + length <= size and not admit(at, at + length) then
      lost, from = "not checked: malformed packets were found whose sizes cover this one", at + 1
    elseif not begins and not length then
      lost, from = lost or "no packet begins here", at
    elseif not lost and bad >= malformed_max then
      lost, from, bad = "not shown one by one, after many malformed packets", at + 1, 0
    end
    if lost then
      stop, name = search(from, size) or size, "Skipped"
      if stop > at then skip(at, stop, root, tree, lost) else name = nil end
      lost = nil
    elseif whole and not begins and size - at < @BASE_HEADER_SIZE@ then
      wait = @BASE_HEADER_SIZE@ - (size - at)
    elseif not begins then
      stop, name = min(at + @BASE_HEADER_SIZE@, size), "Malformed"
      P = at
      fail("BaseHeader.PacketSize", at + @PACKET_SIZE_OFFSET@,
           format("%.0f is not in @PACKET_SIZE_MIN@..@PACKET_SIZE_MAX@", length))
      show_malformed(at, stop, root, tree, false)
      lost, from = "after a PacketSize that can't be", stop
    elseif not length or at + length > size then
      if whole then
        wait = length and at + length - size or DESEGMENT_ONE_MORE_SEGMENT
        -- More bytes may never come: what is malformed whatever they are, is shown now.
        if length and not read(at, size, nil) and E.at < size - at then
          show_malformed(at, size, root, tree, true)
          count, names[count + 1] = count + 1, count < 8 and "Malformed" or nil
        end
      else
        stop, name = size, "Malformed"
        show_malformed(at, stop, root, tree, true)
      end
    else
      stop, name = show_packet(at, at + length, size, root, tree, pinfo)
    end
    if wait then
      pinfo.desegment_offset, pinfo.desegment_len = at, wait
      break
    end
    at = stop
    if name then
      bad = name == "Malformed" and bad + 1 or 0
      if name == "Malformed" or name == "Skipped" then count_packet(name, pinfo) end
      count = count + 1
      if count <= 8 then names[count] = name end
    end
  end
  pinfo.cols.protocol = "MSMQ"
  if count > 0 then
    if there and not tree then add(root, msmq, range(B, 0, size)) end
    pinfo.cols.info = count == 1 and names[1] or table.concat(names, ", ") .. (count > 8 and format(" and %d more", count - 8) or "")
  end
  return size
end

function msmq.dissector(tvb, pinfo, root)
  return dissect_stream(tvb, pinfo, root)
end

DissectorTable.get("tcp.port"):add(@PORT@, msmq)

-- Connections on other ports are recognised by the header of their first packet.
msmq:register_heuristic("tcp", function(tvb, pinfo, root)
  if tvb:len() < @BASE_HEADER_SIZE@ then return false end
  D = tvb:raw(0, @BASE_HEADER_SIZE@)
  local begins, length = begins_packet(0, @BASE_HEADER_SIZE@)
  if not begins or not length then return false end
  pinfo.conversation = msmq
  dissect_stream(tvb, pinfo, root)
  return true
end)
