local function after_packet(at, stop, name, root, tree, pinfo)
end
