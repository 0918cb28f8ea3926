-- What is inside of the body of a message: its format, and the beginning of a text. `msmqwire.bodies` reads more.

local body_looked_at, body_shown = 65536, 200

-- Types that say no more than bytes.
local types_of_bytes = {[0] = true, [1] = true, [65] = true, [0x300] = true, [0x1011] = true, [0x2011] = true}
-- How the value of a type is read, and its size.
local numbers = {
  [2] = {"<i2", 2}, [3] = {"<i4", 4}, [4] = {"<f", 4}, [5] = {"<d", 8}, [16] = {"<i1", 1}, [17] = {"<I1", 1},
  [18] = {"<I2", 2}, [19] = {"<I4", 4}, [22] = {"<i4", 4}, [23] = {"<I4", 4},
}

-- Whether bytes are UTF-8; a character that is cut at their end does not matter.
local function is_utf8(text)
  text = text:gsub("[\194-\223][\128-\191]", "."):gsub("\224[\160-\191][\128-\191]", ".")
  text = text:gsub("[\225-\236\238\239][\128-\191][\128-\191]", "."):gsub("\237[\128-\159][\128-\191]", ".")
  text = text:gsub("\240[\144-\191][\128-\191][\128-\191]", "."):gsub("[\241-\243][\128-\191][\128-\191][\128-\191]", ".")
  text = text:gsub("\244[\128-\143][\128-\191][\128-\191]", ".")
  local odd = find(text, "[\128-\255]")
  return not odd or (#text >= body_looked_at and odd > #text - 4)
end

-- Whether bytes are UTF-16 little-endian without a mark, nearly all of it Latin.
local function is_utf16(data)
  local units, latin = floor(#data / 2), 0
  if units == 0 or #data % 2 == 1 then return false end
  for i = 1, units do
    if byte(data, 2 * i) == 0 then latin = latin + 1 end
  end
  return latin >= 0.75 * units
end

local function has_controls(text)
  return find(text, "[%z\1-\8\11\14-\31\127]") ~= nil
end

-- The text of some bytes in UTF-8 and how to show them, or nil if they are none.
local function plain_text(data, p, n)
  local mark = sub(data, 1, 2)
  if mark == "\255\254" and n % 2 == 0 then return range(B, p + 2, n - 2):le_ustring() end
  if mark == "\254\255" and n % 2 == 0 then return range(B, p + 2, n - 2):ustring() end
  if is_utf16(data) then
    local text = range(B, p, n):le_ustring()
    return not has_controls(text) and text or nil
  end
  if sub(data, 1, 3) == "\239\187\191" then data = sub(data, 4) end
  data = data:gsub("%z$", "")
  return not has_controls(data) and is_utf8(data) and data or nil
end

-- Whether a text of JSON has members, somewhere.
local function has_members(text, ...)
  for _, name in ipairs({...}) do
    if not find(text, '"' .. name .. '"%s*:') then return false end
  end
  return true
end

local function format_of_text(text)
  if find(text, "^%s*<[%a_?!]") then return "xml" end
  local first, last = text:match("^%s*([{%[]).*([}%]])%s*$")
  if not first or (first == "{") ~= (last == "}") then return "text" end
  if has_members(text, "messageType", "messageId", "message") then return "masstransit" end
  if has_members(text, "AssemblyQualifiedName", "Message", "MessageId") then return "shuttle" end
  return "json"
end

-- The format of a body by its content, and its text if it is one.
local function content_of(data, p, n)
  if find(data, "^%z........\1%z%z%z%z%z%z%z") then return "nrbf" end
  if find(data, "^%z\1%z\1[\1-\4]") then return "wcf" end
  if sub(data, 1, 3) == "\31\139\8" then return "gzip" end
  local text = plain_text(data, p, n)
  if text then return format_of_text(text), text end
  return "bytes"
end

-- The text of a body by its type, nil if this is not known here; and whether the bytes are of that type.
local function typed_text(data, p, n, kind)
  if kind == 8 or kind == 31 then
    return range(B, p, n):le_ustring(), n % 2 == 0
  elseif kind == 30 then
    return is_utf8(data) and data or nil, true
  elseif kind == 11 then
    return data == "\0\0" and "false" or "true", n == 2
  elseif numbers[kind] then
    if n ~= numbers[kind][2] then return nil, false end
    local number = unpack(numbers[kind][1], data)
    return floor(number) == number and format("%.0f", number) or tostring(number), true
  end
  return nil, true
end

-- One line of a text: spaces and line ends as one space, cut at a character.
local function one_line(text)
  text = text:gsub("%z+$", ""):gsub("%s+", " "):gsub("^ ", ""):gsub(" $", "")
  if #text <= body_shown then return text end
  local stop = body_shown
  while stop > 0 and (byte(text, stop + 1) or 0) >= 128 and byte(text, stop + 1) < 192 do stop = stop - 1 end
  return sub(text, 1, stop) .. "…"
end

local function show_headers(item)
  local p, n = @V:MessagePropertiesHeader.ExtensionData@, @N:MessagePropertiesHeader.ExtensionData@
  if not p or n == 0 then return end
  local data = sub(D, p + 1, p + min(n, body_looked_at))
  local name
  if find(data, "<HeaderInfo", 1, true) then
    name = "nservicebus"
  elseif find(data, "^%s*{") and find(data, '"rbs2-', 1, true) then
    name = "rebus"
  end
  if name then add(item, extra.headers_format, range(B, p, n), name):set_generated() end
end

-- Shows what is inside of the body of the message that was read.
local function show_body(item)
  local p, n = @V:MessagePropertiesHeader.MessageBody@, @N:MessagePropertiesHeader.MessageBody@
  show_headers(item)
  if not p or not n or n == 0 then return end
  if @V:SecurityHeader.Flags@ and @V:SecurityHeader.Flags.EB@ == 1 then return end
  local kind, looked_at = @V:MessagePropertiesHeader.BodyType@, min(n, body_looked_at)
  local data = sub(D, p + 1, p + looked_at)
  local name, text = "activex", nil
  if types_of_bytes[kind] then
    name, text = content_of(data, p, looked_at)
  else
    local fits
    text, fits = typed_text(data, p, looked_at, kind)
    if not fits then name, text = content_of(data, p, looked_at) end
  end
  local bytes = range(B, p, n)
  add(item, extra.body_format, bytes, name):set_generated()
  if text and text ~= "" then add(item, extra.body_text, bytes, one_line(text)):set_generated() end
end
