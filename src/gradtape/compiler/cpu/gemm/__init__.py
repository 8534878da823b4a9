"""Matrix products: functions in LLVM IR for each size, in tiles that stay in registers."""
