"""ONYX: a message as an element stream.

Source: Diao, Rizvi and Franklin: Towards an Internet-Scale XML Dissemination Service, VLDB 2004.
"""
