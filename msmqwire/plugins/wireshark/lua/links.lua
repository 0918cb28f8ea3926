-- Conversations: which packet answers or acknowledges which. They are found when frames are seen for the first
-- time, and kept by frame.

-- By frame, its packets in a chain, each with its place in it and the frames that it is linked with.
local links = {}
-- By direction: messages sent and acknowledged, and those between; what waits for its answer.
local sides = {}
-- Messages by their sequence and number, and by their identifier; pings by their cookie.
local sequenced, identified, pinged = {count = 0}, {count = 0}, {count = 0}
-- The keys of both directions, of the frame that they were made for.
local keyed, own_key, peer_key = nil, "", ""
local kept_max, window_max = 262144, 65535

function msmq.init()
  links, sides, keyed, asked.frame = {}, {}, nil, nil
  sequenced, identified, pinged = {count = 0}, {count = 0}, {count = 0}
end

-- Remembers something; everything is forgotten when it is too much.
local function remember(memory, key, value)
  if memory[key] == nil then memory.count = memory.count + 1 end
  if memory.count > kept_max then
    for known in pairs(memory) do memory[known] = nil end
    memory.count = 1
  end
  memory[key] = value
end

local function side_of(key)
  local side = sides[key]
  if not side then
    side = {sent = nil, acked = nil, messages = {}}
    sides[key] = side
  end
  return side
end

local function restart(side)
  side.sent, side.acked, side.messages = 0, 0, {}
end

-- A request and its answer, the other way.
local function exchange(name, own, peer, here, frame)
  local asked = peer[name]
  if asked then
    peer[name] = nil
    here.request_in, asked.response_in = asked.frame, frame
  else
    own[name] = here
    if name == "EstablishConnection" then
      restart(own)
      restart(peer)
    end
  end
end

-- Counts that a SessionHeader claims and acknowledges: [MS-MQMQ] 2.2.20.4.
local function session_header(own, peer, here, frame)
  local claimed, acknowledged = @V:SessionHeader.UserMsgSequenceNumber@, @V:SessionHeader.AckSequenceNumber@
  if not own.sent or own.sent % 65536 ~= claimed then
    own.sent = claimed + 65536
    own.acked, own.messages = own.sent, {}
  end
  if not peer.sent then return end
  local behind = (peer.sent - acknowledged) % 65536
  if behind > peer.sent - peer.acked then return end
  for number = peer.acked + 1, peer.sent - behind do
    local message = peer.messages[number]
    if message then
      message.acknowledged_in, here.acknowledges = frame, message.frame
      peer.messages[number] = nil
    end
  end
  peer.acked = peer.sent - behind
end

local function identifier()
  local guid = @V:UserHeader.SourceQueueManager@
  local number = @V:UserHeader.MessageID@
  return sub(D, guid + 1, guid + 16) .. Struct.pack("<I4", number)
end

local no_identifier = ("\0"):rep(20)

local function acknowledgement_of(here, field, message, frame)
  if message then message[field], here.message_in = frame, message.frame end
end

local function message(name, own, here, frame)
  if own.sent then
    own.sent = own.sent + 1
    own.messages[own.sent] = here
    if own.sent - own.acked > window_max then own.acked, own.messages = own.sent, {} end
  end
  if name == "OrderAck" then
    local key = format("%.0f.%.0f.%.0f", @V:OrderAckBody.TxSequenceID.TimeStamp@,
                       @V:OrderAckBody.TxSequenceID.Ordinal@, @V:OrderAckBody.TxSequenceNumber@)
    acknowledgement_of(here, "order_ack_in", sequenced[key], frame)
  elseif name == "FinalAck" then
    local guid = @V:FinalAckBody.SourceGUID@
    acknowledgement_of(here, "final_ack_in", identified[sub(D, guid + 1, guid + 20)], frame)
  else
    local correlation = @V:MessagePropertiesHeader.CorrelationID@
    local about = sub(D, correlation + 1, correlation + 20)
    local known = about ~= no_identifier and identified[about]
    if known and @V:MessagePropertiesHeader.MessageClass@ ~= 0 then
      acknowledgement_of(here, "administration_in", known, frame)
    elseif known then
      known.answered_in, here.answers = frame, known.frame
    end
    remember(identified, identifier(), here)
    local number = @V:TransactionHeader.TxSequenceNumber@
    if number then
      local key = format("%.0f.%.0f.%.0f", @V:TransactionHeader.TxSequenceID.TimeStamp@,
                         @V:TransactionHeader.TxSequenceID.Ordinal@, number)
      remember(sequenced, key, here)
    end
  end
end

local function make_keys(frame, pinfo)
  local src = tostring(pinfo.src) .. " " .. pinfo.src_port
  local dst = tostring(pinfo.dst) .. " " .. pinfo.dst_port
  keyed, own_key, peer_key = frame, src .. ">" .. dst, dst .. ">" .. src
end

-- Notes what a packet that is seen for the first time is linked with.
local function note(name, here, frame, pinfo)
  if keyed ~= frame then make_keys(frame, pinfo) end
  if name == "Ping" then
    local cookie = format("#%.0f", @V:Ping.Cookie@)
    local asked = pinged[peer_key .. cookie]
    if asked and not asked.response_in then
      here.request_in, asked.response_in = asked.frame, frame
    else
      remember(pinged, own_key .. cookie, here)
    end
    return
  end
  local own, peer = side_of(own_key), side_of(peer_key)
  if name == "EstablishConnection" or name == "ConnectionParameters" then
    exchange(name, own, peer, here, frame)
    return
  end
  if name ~= "SessionAck" then message(name, own, here, frame) end
  if name == "SessionAck" or @V:SessionHeader.AckSequenceNumber@ then session_header(own, peer, here, frame) end
end

local function after_packet(at, name, item, pinfo)
  local frame, place = pinfo.number, at * 8388608 + #D
  local first = links[frame]
  local here = first
  while here and here.place ~= place do here = here.following end
  if not here and not pinfo.visited then
    here = {frame = frame, place = place, following = first}
    links[frame] = here
    note(name, here, frame, pinfo)
  end
  if not item or not here then return end
  for _, field in ipairs(link_order) do
    if here[field] then add(item, link[field], here[field]):set_generated() end
  end
end
