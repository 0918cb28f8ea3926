extra.rpc_interface = ProtoField.string("msmq.rpc.interface", "Interface", base.ASCII, "Of a call by DCE/RPC.")
extra.rpc_procedure = ProtoField.string("msmq.rpc.procedure", "Procedure", base.ASCII, "Of a call, and of its answer.")
