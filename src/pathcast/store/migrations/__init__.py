"""Schemas of the store, one after the other; a step that was published is never changed."""
