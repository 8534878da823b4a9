"""The CPU target: plans printed as LLVM IR, compiled, linked and called."""
