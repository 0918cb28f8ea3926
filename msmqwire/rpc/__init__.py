"""DCE/RPC: [C706] and [MS-RPCE], without I/O."""
