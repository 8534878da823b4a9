"""The machinery: ops, tensors, records, levels and dispatch. Imports nothing of `ops`."""
