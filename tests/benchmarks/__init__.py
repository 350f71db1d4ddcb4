"""Benchmarks: run by hand, over pipes, against any server command."""
