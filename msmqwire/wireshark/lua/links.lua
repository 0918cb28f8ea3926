local function after_packet(at, stop, name, item, pinfo)
end
