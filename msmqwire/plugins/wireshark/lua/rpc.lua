-- Calls by DCE/RPC, which Wireshark reads: the names of their interfaces and procedures, after its own dissectors.
do

-- By UUID and major version, in little-endian, the name of an interface and its procedures by opnum.
local interfaces = {
@RPC_INTERFACES@}
local header_size, syntax_size, element_size = @RPC_HEADER_SIZE@, 20, 24
local request, response, fault = @RPC_REQUEST@, @RPC_RESPONSE@, @RPC_FAULT@
local bind, alter_context = @RPC_BIND@, @RPC_ALTER_CONTEXT@

local pdus, streams = Field.new("dcerpc"), Field.new("tcp.stream")
-- The interface of a presentation context of a connection, and the interface and opnum of a call: by connection
-- and number. Names by frame, in the order of its PDUs; false for one without.
local contexts, called, named = {count = 0}, {count = 0}, {count = 0}

local rpc = Proto("msmq_rpc", "Message Queuing RPC")

function rpc.init()
  contexts, called, named = {count = 0}, {count = 0}, {count = 0}
end

local function forget(memory, key)
  if memory[key] ~= nil then memory[key], memory.count = nil, memory.count - 1 end
end

-- The key of an interface from its identifier in a PDU whose numbers have the order "<" or ">".
local function key_of(d, at, order)
  local a, b, c = unpack(order .. "I4I2I2", d, at)
  local version = unpack(order .. "I4", d, at + 16)
  return Struct.pack("<I4I2I2", a, b, c) .. sub(d, at + 8, at + 15) .. Struct.pack("<I2", version % 65536)
end

-- Notes the interfaces that a bind or alter_context proposes, as far as it is there.
local function propose(stream, d, order)
  local at = header_size + 8 + 1
  local left = byte(d, at) or 0
  at = at + 4
  while left > 0 and at + element_size - 1 <= #d do
    local key = stream .. " " .. unpack(order .. "I2", d, at)
    local interface = interfaces[key_of(d, at + 4, order)]
    if interface then remember(contexts, key, interface) else forget(contexts, key) end
    at = at + element_size + syntax_size * byte(d, at + 2)
    left = left - 1
  end
end

-- What a PDU is of: interface and opnum; nil for other interfaces.
local function call_of(stream, d)
  if #d < header_size or byte(d, 1) ~= 5 then return nil end
  local order = floor(byte(d, 5) / 16) == 1 and "<" or ">"
  local kind = byte(d, 3)
  if kind == bind or kind == alter_context then
    propose(stream, d, order)
    return nil
  end
  local call = stream .. " " .. format("%.0f", (unpack(order .. "I4", d, 13)))
  if kind == response or kind == fault then return called[call] end
  if kind ~= request or #d < header_size + 8 then return nil end
  local context, opnum = unpack(order .. "I2I2", d, header_size + 5)
  local interface = contexts[stream .. " " .. context]
  if not interface then
    forget(called, call)
    return nil
  end
  local made = {interface = interface, opnum = opnum}
  remember(called, call, made)
  return made
end

-- The names of all PDUs of a frame; nil if it has none.
local function names_of(shown_pdus)
  local stream = streams()
  if not stream then return nil end
  local names, any = {}, false
  for number, pdu in ipairs(shown_pdus) do
    local call = pdu.len > 0 and call_of(tostring(stream.value), pdu.range:raw())
    names[number] = call or false
    any = any or call
  end
  return any and names or nil
end

function rpc.dissector(_, pinfo, root)
  local shown_pdus = {pdus()}
  if #shown_pdus == 0 then return end
  local frame = pinfo.number
  -- A first pass may have no trees, and so no fields: what it has not named is read again.
  local names = named[frame]
  if not names then
    names = names_of(shown_pdus)
    if not names then return end
    remember(named, frame, names)
  end
  for number, pdu in ipairs(shown_pdus) do
    local call = names[number]
    if call then
      local procedure = call.interface.procedures[call.opnum]
      local item = add(root, rpc, pdu.range)
      add(item, extra.rpc_interface, pdu.range, call.interface.name):set_generated()
      if procedure then
        add(item, extra.rpc_procedure, pdu.range, procedure):set_generated()
        item:append_text(", " .. procedure)
        pinfo.cols.info:append(" " .. procedure)
      end
    end
  end
end

register_postdissector(rpc)

end
