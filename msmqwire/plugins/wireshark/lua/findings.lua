-- What departs from the specifications in one packet.

local judged, judged_bytes -- the item of the packet, and its bytes; no bytes without a tree

local function found(number, path)
  if judged_bytes then
    local item = add(judged, extra.finding, judged_bytes, ids[number])
    item:set_generated()
    add(item, extra.finding_path, judged_bytes, path):set_generated()
    item:add_proto_expert_info(K[number], path .. ": " .. titles[number])
  else
    judged:add_proto_expert_info(K[number], path .. ": " .. titles[number])
  end
end

-- DataLength fits as bytes, but in characters reaches past the packet.
local function judge_data_length(stop)
  local length, data = @V:SRMPEnvelopeHeader.DataLength@, @V:SRMPEnvelopeHeader.Data@
  if data and data + 2 * length > min(stop, P + @V:BaseHeader.PacketSize@) then
    found(number_of["ATTACK-SRMP-LENGTH"], "SRMPEnvelopeHeader.DataLength")
  end
end

local function judge(name, at, stop, root, item)
  judged, judged_bytes = item or root, item and range(B, at, stop - at)
  J[name](found)
  if name == "UserMessage" then
    local class = @V:MessagePropertiesHeader.MessageClass@
    if class == @ORDER_CLASS@ then
      J.OrderAck(found)
    elseif class >= @FINAL_CLASS@ and is_order_queue() then
      J.FinalAck(found)
    end
  end
  if name == "UserMessage" or name == "OrderAck" or name == "FinalAck" then judge_data_length(stop) end
end

-- The requirements and attacks that go with the field that makes a packet malformed.
local blamed_values = {
@BLAMED_VALUES@
}
local blamed_sizes = {
@BLAMED_SIZES@
}

local function judge_malformed(at, stop, root, item)
  judged, judged_bytes = item or root, item and range(B, at, stop - at)
  local path, blamed = E.path, nil
  if E.size then
    blamed = blamed_sizes[path] or {"ATTACK-LENGTH"}
  elseif not E.need then -- else the bytes end before the value
    blamed = blamed_values[path]
  end
  for _, id in ipairs(blamed or {}) do
    found(number_of[id], path)
  end
end
