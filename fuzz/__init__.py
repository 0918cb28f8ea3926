"""Property-based fuzzing of MSMQ peers: strategies, mutations and the invariants they try to break."""
