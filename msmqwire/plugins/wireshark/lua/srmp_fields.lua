for _, name in ipairs({"to", "id", "action", "identity", "from", "sentAt", "expiresAt", "inReplyTo"}) do
  extra["srmp_" .. name] = ProtoField.string("msmq.srmp." .. name:lower(), name, base.UNICODE, "Of an SRMP envelope.")
end
extra.srmp_line = ProtoField.string("msmq.srmp.line", "Line", base.UNICODE, "A line of the head of HTTP or MIME.")
extra.srmp_part = ProtoField.bytes("msmq.srmp.part", "Content", base.NONE, "Content of HTTP or of one MIME part.")
local media_types = DissectorTable.get("media_type")
