-- Ping packets, datagrams of their own. A port may be that of any program, so the signature has to be there.

local ping = Proto("msmq_ping", "Microsoft Message Queuing Ping")

function ping.dissector(tvb, pinfo, root)
  local size = tvb:len()
  local signature = @PING_SIGNATURE_OFFSET@ + 1
  if sub(tvb:raw(), signature, signature + 1) ~= @PING_SIGNATURE_BYTES@ then return 0 end
  local tree = shown(root) and root or nil
  B, D = tvb, tvb:raw()
  P, L, PE, I = 0, size, huge, 0
  pinfo.cols.protocol = "MSMQ"
  local p = @S:Ping@(0, size, nil)
  if p and p ~= size then p = fail("Ping", @PING_SIZE@, format("%d bytes are not a Ping", size)) end
  if not p then
    pinfo.cols.info = "Malformed"
    count_packet("Malformed", pinfo)
    local item = item_of(0, size, tree, "malformed", "Malformed")
    if not @S:Ping@(0, size, item) then E.path = E.path:gsub("^Ping%.", "") end
    blame(0, size, root, item)
    return size
  end
  pinfo.cols.info = "Ping"
  local item = item_of(0, size, tree, "Ping", "Ping")
  if item then @S:Ping@(0, size, item) end
  after_packet(0, "Ping", item, pinfo)
  count_packet("Ping", pinfo)
  return size
end

DissectorTable.get("udp.port"):add(@PING_PORT@, ping)
