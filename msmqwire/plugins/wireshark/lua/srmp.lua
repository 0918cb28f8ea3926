-- The parts of SRMP: envelopes and HTTP requests inside packets, and envelopes in requests over HTTP. XML and
-- other content goes to Wireshark's own dissectors.

local parts_max, lines_max, line_max, tags_max = 64, 128, 4096, 4096
local text_max, content_max, depth_max = 65536, 262144, 2
local depth = 0

local xml_dissector = Dissector.get("xml")
local xml_types = {["text/xml"] = true, ["application/xml"] = true, ["application/soap+xml"] = true}

-- Hands bytes to another dissector, whatever it makes of them. It may come back to this one.
local function hand_over(call, ...)
  if depth >= depth_max then return end
  local b, d, p, l, pe, i = B, D, P, L, PE, I
  depth = depth + 1
  pcall(call, ...)
  depth = depth - 1
  B, D, P, L, PE, I = b, d, p, l, pe, i
end

-- Parts in which nothing is markup. Each may have what another begins with.
local no_markup = {["<!--"] = "-->", ["<![CDATA["] = "]]>", ["<?"] = "?>"}

-- Where the part that begins at a place ends, if one does; one without an end goes to that of the text.
local function end_of_part(text, start)
  for first, last in pairs(no_markup) do
    if sub(text, start, start + #first - 1) == first then
      local _, stop = find(text, last, start + #first, true)
      return stop or #text
    end
  end
end

-- A text without these parts.
local function markup(text)
  local kept, at, start = {}, 1, find(text, "<[!?]")
  while start do
    local stop = end_of_part(text, start)
    if stop then
      kept[#kept + 1] = sub(text, at, start - 1)
      at = stop + 1
    end
    start = find(text, "<[!?]", (stop or start) + 1)
  end
  return table.concat(kept) .. sub(text, at)
end

-- Whether a text has an envelope with the namespace of SRMP, and does not only mention it.
local function is_envelope(text)
  if not find(text, "http://schemas.xmlsoap.org/srmp/", 1, true) then return false end
  text = markup(text)
  local start = find(text, "<[%w._-]*:?Envelope[%s/>]")
  if not start then return false end
  local declared = "[%s\"']xmlns:?[%w._-]*%s*=%s*[\"']http://schemas%.xmlsoap%.org/srmp/[\"']"
  for part in sub(text, start):gmatch("<([^<]*)") do
    local at = find(part, declared)
    -- In a tag no ">" is in front of it, but in quotes.
    if at and not sub(part, 1, at):gsub('"[^"]*"', ""):gsub("'[^']*'", ""):find(">", 1, true) then return true end
  end
  return false
end

-- Shows what an envelope says of its message, if it is one of SRMP.
local function show_envelope(text, bytes, item)
  if not is_envelope(text) then return end
  local tags = 0
  for tag, value in sub(text, 1, text_max):gmatch("<([^<>]*)>([^<]*)") do
    tags = tags + 1
    if tags > tags_max then return end
    local name = sub(tag, 1, 256):match("^[^%s/]*"):gsub("^.*:", "")
    local field = extra["srmp_" .. name]
    if field and #value <= line_max then add(item, field, bytes, value):set_generated() end
  end
end

-- Shows UTF-16 text of a packet as XML.
local function show_text(p, n, title, pinfo, item)
  if not p or not n or n <= 2 or not is_text(p, n) then return end
  local text = text_of(p, n)
  if not find(text, "^%s*<") then return end
  show_envelope(text, range(B, p, n), item)
  if #text > content_max then return end
  hand_over(xml_dissector.call, xml_dissector, ByteArray.new(text, true):tvb(title), pinfo, item)
end

-- The lines of a head from an offset of a text on: what they say by name, in lower case, and where they end.
local function head_of(text, from, item, data, p)
  local fields = {}
  for _ = 1, lines_max do
    local stop = find(text, "\r\n", from, true)
    if not stop then return nil end
    if stop == from then return fields, stop + 2 end
    local line = sub(text, from, stop - 1)
    add(item, extra.srmp_line, data(p + from - 1, #line), line)
    local name, value = sub(line, 1, line_max):match("^([%w%-]+):[ \t]*(.*)$")
    if name then fields[name:lower()] = value end
    from = stop + 2
  end
  return nil
end

local function media_type(fields)
  return (fields["content-type"] or ""):match("^%s*([^;%s]*)"):lower()
end

-- Shows some content by its type; `p` is where it is in the packet.
local function show_content(kind, text, p, pinfo, item)
  if #text == 0 or #text > content_max then return end
  local bytes = range(B, p, #text)
  local part = add(item, extra.srmp_part, bytes)
  if xml_types[kind] then
    show_envelope(text, bytes, part)
    hand_over(xml_dissector.call, xml_dissector, bytes:tvb(), pinfo, part)
  elseif kind ~= "" then
    hand_over(media_types.try, media_types, kind, bytes:tvb(), pinfo, part)
  end
end

-- Shows the HTTP request in a CompoundMessageHeader.
local function show_request(p, n, pinfo, item)
  if not p or not n or n == 0 then return end
  local text = sub(D, p + 1, p + n)
  local function data(at, size) return range(B, at, size) end
  if find(text, "^%s*<") then
    show_content("text/xml", text, p, pinfo, item)
    return
  end
  local fields, from = head_of(text, 1, item, data, p)
  if not fields then return end
  local boundary = fields["content-type"] and
    (fields["content-type"]:match('boundary="([^"]+)"') or fields["content-type"]:match("boundary=([^;%s]+)"))
  if not find(media_type(fields), "^multipart/") or not boundary then
    show_content(media_type(fields), sub(text, from), p + from - 1, pinfo, item)
    return
  end
  local mark = "--" .. boundary
  local at = find(text, mark, from, true)
  for _ = 1, parts_max do
    if not at or sub(text, at + #mark, at + #mark + 1) ~= "\r\n" then return end
    local head, start = head_of(text, at + #mark + 2, item, data, p)
    local stop = start and find(text, "\r\n" .. mark, start, true)
    if not stop then return end
    show_content(media_type(head), sub(text, start, stop - 1), p + start - 1, pinfo, item)
    at = stop + 2
  end
end

-- Shows what is inside the headers of a message that came over HTTP, and SOAP of an application.
local function show_srmp(pinfo, item)
  if @V:SRMPEnvelopeHeader.HeaderId@ then
    show_text(@V:SRMPEnvelopeHeader.Data@, @N:SRMPEnvelopeHeader.Data@, "SRMP envelope", pinfo, item)
    show_request(@V:CompoundMessageHeader.Data@, @N:CompoundMessageHeader.Data@, pinfo, item)
  end
  if @V:SoapHeader.HeaderSectionID@ then
    local header, header_size = @V:SoapHeader.Header@, @N:SoapHeader.Header@
    local body, body_size = @V:SoapHeader.Body@, @N:SoapHeader.Body@
    show_text(header, header_size, "SOAP header", pinfo, item)
    show_text(body, body_size, "SOAP body", pinfo, item)
  end
end

-- XML over HTTP: what SRMP is of it, is shown in a tree of its own before that of the XML.
local srmp = Proto("msmq_srmp", "Message Queuing SRMP")

function srmp.dissector(tvb, pinfo, root)
  if shown(root) then
    local text = tvb:raw()
    if is_envelope(text) then
      local item = add(root, srmp, tvb())
      show_envelope(text, tvb(), item)
      add(item, extra.packet, tvb(), "SrmpMessage"):set_generated()
    end
  end
  hand_over(xml_dissector.call, xml_dissector, tvb, pinfo, root)
  return tvb:len()
end

media_types:add("text/xml", srmp)
