-- Statistics: packets by kind, messages by queue. In tshark `-z msmq,stat`, in Wireshark under Tools.

local function guid_at(p)
  local a, b, c = unpack("<I4I2I2", D, p + 1)
  local rest = {byte(D, p + 9, p + 16)}
  return format("%08x-%04x-%04x-%02x%02x-%02x%02x%02x%02x%02x%02x", a, b, c, rest[1], rest[2], rest[3], rest[4],
                rest[5], rest[6], rest[7], rest[8])
end

-- The destination of the message that was read, as a format name.
local function destination()
  local form = @V:UserHeader.Flags.DQ@
  if form == @DIRECT@ then
    local p, n = @V:UserHeader.DestinationQueue.DirectFormatName@, @N:UserHeader.DestinationQueue.DirectFormatName@
    if not is_text(p, n) then return "DIRECT, not well-formed" end
    -- It may go to a terminal: no control characters, of ASCII or of what follows it in Unicode.
    return (("DIRECT=" .. text_of(p, n)):gsub("%c", "?"):gsub("\194[\128-\159]", "?"))
  elseif form == @PUBLIC@ then
    return "PUBLIC=" .. guid_at(@V:UserHeader.DestinationQueue.PublicQueueIdentifier@)
  elseif form == @AT_DESTINATION@ then
    return format("PRIVATE=%s\\%x", guid_at(@V:UserHeader.QueueManagerAddress@),
                  @V:UserHeader.DestinationQueue.PrivateQueueIdentifier@)
  end
  return "no queue"
end

local listeners = 0
local seen = {frame = nil, names = {}, queues = {}}
local queues_max = 10000

-- Notes a packet of a frame for the listeners.
local function count_packet(name, pinfo)
  if listeners == 0 then return end
  if seen.frame ~= pinfo.number then seen = {frame = pinfo.number, names = {}, queues = {}} end
  seen.names[#seen.names + 1] = name
  if name == "UserMessage" then seen.queues[#seen.queues + 1] = destination() end
end

local function counter()
  local counts = {names = {}, queues = {}, packets = 0, known = 0}
  function counts.add(frame)
    if seen.frame ~= frame then return end
    for _, name in ipairs(seen.names) do
      counts.packets = counts.packets + 1
      counts.names[name] = (counts.names[name] or 0) + 1
    end
    for _, queue in ipairs(seen.queues) do
      if not counts.queues[queue] then
        if counts.known >= queues_max then queue = "other queues" else counts.known = counts.known + 1 end
      end
      counts.queues[queue] = (counts.queues[queue] or 0) + 1
    end
    seen.frame = nil
  end
  function counts.reset()
    counts.names, counts.queues, counts.packets, counts.known = {}, {}, 0, 0
  end
  function counts.text()
    local lines = {"", "Microsoft Message Queuing", format("%-48s %10d", "Packets", counts.packets)}
    for _, part in ipairs({{"By kind", counts.names}, {"Messages by queue", counts.queues}}) do
      local keys = {}
      for key in pairs(part[2]) do keys[#keys + 1] = key end
      table.sort(keys)
      lines[#lines + 1] = part[1]
      for _, key in ipairs(keys) do lines[#lines + 1] = format("  %-46s %10d", key, part[2][key]) end
    end
    return table.concat(lines, "\n") .. "\n"
  end
  return counts
end

local function listen(counts)
  listeners = listeners + 1
  local tap = Listener.new("frame", "msmq or msmq_ping")
  function tap.packet(pinfo) counts.add(pinfo.number) end
  tap.reset = counts.reset
  return tap
end

if register_stat_cmd_arg then
  register_stat_cmd_arg("msmq,stat", function()
    local counts = counter()
    local tap = listen(counts)
    function tap.draw() print(counts.text()) end
  end)
end

if gui_enabled() then
  register_menu("MSMQ/Packets and queues", function()
    local counts = counter()
    local tap = listen(counts)
    local window = TextWindow.new("Microsoft Message Queuing")
    window:set_atclose(function()
      tap:remove()
      listeners = listeners - 1
    end)
    function tap.draw() window:set(counts.text()) end
    retap_packets()
  end, MENU_TOOLS_UNSORTED)
end
