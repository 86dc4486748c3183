"""Workloads: documents and queries by a DTD, and the sample domains of demo and tests.

Example:
    >>> from pathcast.schema import parse_dtd
    >>> graph = parse_dtd("<!ELEMENT a (b*)><!ELEMENT b (#PCDATA)>")
    >>> sorted(generate_queries(graph, QueryParameters(count=2, wildcard=0, descendant=0)))
    ['/a', '/a/b']

Reading a DTD needs lxml (extra `workload`).

Source: 003, 4.2.1.
"""
