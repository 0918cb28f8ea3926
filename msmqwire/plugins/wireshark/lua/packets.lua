-- Reading one packet.

for i = 1, @KEPT@ do V[i], N[i], O[i], X[i] = false, false, false, false end

-- Forgets what an earlier message had in parts that not every message has.
local function forget()
@FORGOTTEN@
end

local order_queue_tail = @ORDER_QUEUE_TAIL@

local function is_order_queue()
  local form = @V:UserHeader.Flags.DQ@
  if form == @AT_DESTINATION@ then
    return @V:UserHeader.DestinationQueue.PrivateQueueIdentifier@ == @ORDER_QUEUE_IDENTIFIER@
  end
  local p, n = @V:UserHeader.DestinationQueue.DirectFormatName@, @N:UserHeader.DestinationQueue.DirectFormatName@
  if form ~= @DIRECT@ or not p or not is_text(p, n) then return false end
  return n >= #order_queue_tail and sub(D, p + n - #order_queue_tail + 1, p + n):lower() == order_queue_tail
end

-- The name and the reader of the body of an order or final acknowledgement: [MS-MQQB] 3.1.5.1.1.
local function acknowledgement()
  if @V:BaseHeader.Flags@ ~= 0 then return nil end
  local label = @V:MessagePropertiesHeader.Label@
  if sub(D, label + 1, label + @N:MessagePropertiesHeader.Label@) ~= @ACK_LABEL@ then return nil end
  if not is_order_queue() then return nil end
  local class = @V:MessagePropertiesHeader.MessageClass@
  if class >= @FINAL_CLASS@ then return "FinalAck", @S:FinalAckBody@ end
  if class == @ORDER_CLASS@ and @V:MessagePropertiesHeader.MessageSize@ == @ACK_BODY_SIZE@ then
    return "OrderAck", @S:OrderAckBody@
  end
  return nil
end

local internal = {
@INTERNAL@
}

local internal_names = {}
for _, kind in pairs(internal) do internal_names[kind[1]] = true end

local function read_internal(at, stop, t)
  local kind = @PT_SESSION_ACK@
  if stop - at >= @INTERNAL_SIZE@ then
    kind = byte(D, at + @PT_OFFSET@ + 1) % @PT_VALUES@
    if not internal[kind] then
      return fail("InternalHeader.Flags.PT", at + @PT_OFFSET@, format("%d is not 1, 2 or 3", kind))
    end
    if kind == @PT_SESSION_ACK@ and floor(byte(D, at + @FLAGS_OFFSET@ + 1) / @SESSION_HEADER_BIT@) % 2 == 0 then
      return fail("BaseHeader.Flags.SH", at + @FLAGS_OFFSET@, "not set in a SessionAck")
    end
  end
  local p = internal[kind][2](at, huge, t)
  return p and internal[kind][1], p
end

-- Reads the packet in some bytes; returns its name, or nothing after `fail`.
local function read(at, stop, t)
  P, L, PE, I = at, stop, huge, 0
  local name, p
  if stop - at > @FLAGS_OFFSET@ and floor(byte(D, at + @FLAGS_OFFSET@ + 1) / @INTERNAL_BIT@) % 2 == 1 then
    name, p = read_internal(at, stop, t)
    if not p then return nil end
  else
    forget()
    name, p = "UserMessage", @USER_MESSAGE@(at, huge, t)
    if not p then return nil end
    local acknowledged, body = acknowledgement()
    if acknowledged then
      name = acknowledged
      local size = @V:MessagePropertiesHeader.MessageSize@
      if size ~= @ACK_BODY_SIZE@ then
        return fail("MessagePropertiesHeader.MessageSize", @O:MessagePropertiesHeader.MessageSize@,
                    format("%d, but the body of a %s takes @ACK_BODY_SIZE@ bytes", size, name))
      end
      local start = @V:MessagePropertiesHeader.MessageBody@
      body(start, start + size, t)
    end
  end
  if p ~= stop then
    return fail("BaseHeader.PacketSize", at + @PACKET_SIZE_OFFSET@, "not the bytes that are there")
  end
  return name
end

-- How many bytes behind the last header of the message that was read are not ExtensionHeader.
local function unexplained_tail()
  local p, n = @V:TrailingData@, @N:TrailingData@
  if not p or n == 0 then return 0 end
  local start, stop = P, L
  P, L = p, p + n
  local after = @S:ExtensionHeader@(p, p + n, nil)
  P, L = start, stop
  local size = @V:ExtensionHeader.HeaderSize@
  if after and size == after - p and @V:ExtensionHeader.RemainingHeadersSize@ == n - size then return 0 end
  return n
end

-- Says what an item is.
local function entitle(item, at, stop, text, name)
  item:set_text("MSMQ " .. text)
  add(item, extra.packet, range(B, at, stop - at), name):set_generated()
end

-- Adds the item of a packet, or of bytes that are none; returns it, nil without a tree.
local function item_of(at, stop, tree, text, name)
  if not tree then return nil end
  local item = add(tree, msmq, range(B, at, stop - at))
  entitle(item, at, stop, text, name)
  return item
end

-- Shows why bytes are malformed, as `fail` noted it.
local function blame(at, stop, tree, item)
  local why = refusal()
  if not item then
    tree:add_proto_expert_info(expert_malformed, why)
    return
  end
  local bytes = range(B, at, stop - at)
  add(item, extra.path, bytes, E.path):set_generated()
  add(item, extra.offset, bytes, E.at):set_generated()
  item:add_proto_expert_info(expert_malformed, why)
end
