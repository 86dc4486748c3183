"""Chunking of messages (paper 004) in plain Python: the oracle of the streaming chunker.

Source: Lehner and Irmert, *XPath-Aware Chunking of XML-Documents*, BTW 2003.
"""
