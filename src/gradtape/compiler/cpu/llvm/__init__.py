"""The printer for CPUs: loop nests as LLVM IR with explicit vectors, compiled by llvmlite."""
