"""Graphs of op calls: functions recorded at abstract values."""
