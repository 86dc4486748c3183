"""Chunks: a message is cut by what queries ask for, and each query sees the piece that it needs."""
