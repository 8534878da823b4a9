"""The compiler: graphs become fused loop nests, loop nests become native code."""
