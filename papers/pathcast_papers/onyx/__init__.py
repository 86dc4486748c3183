"""ONYX: a message as an element stream; exclusiveness patterns that a schema helps to choose.

Source: Diao, Rizvi and Franklin: Towards an Internet-Scale XML Dissemination Service, VLDB 2004.
"""
