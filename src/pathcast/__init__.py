"""Pathcast: filter XML messages by hundreds of thousands of standing XPath queries."""

from __future__ import annotations
