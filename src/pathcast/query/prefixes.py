"""Prefixes that vocabularies are usually written with, in packs by the name of the vocabulary.

Example:
    >>> PREFIX_PACKS["cap"]
    mappingproxy({'cap': 'urn:oasis:names:tc:emergency:cap:1.2'})
    >>> usual_uri("cbc"), usual_uri("zzz")
    ('urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2', None)

A pack binds nothing by itself: it is given as `namespaces`, or named with `--namespace ubl`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_UBL: Final = "urn:oasis:names:specification:ubl:schema:xsd"
_EFORMS: Final = "http://data.europa.eu/p27/eforms"
_CII: Final = "urn:un:unece:uncefact:data:standard"
_WSS: Final = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity"

_UBL_PACK: Final = {
    "cac": f"{_UBL}:CommonAggregateComponents-2",
    "cbc": f"{_UBL}:CommonBasicComponents-2",
    "ext": f"{_UBL}:CommonExtensionComponents-2",
}

PREFIX_PACKS: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        name: MappingProxyType(pack)
        for name, pack in {
            "atom": {"atom": "http://www.w3.org/2005/Atom"},
            "cap": {"cap": "urn:oasis:names:tc:emergency:cap:1.2"},
            "cii": {
                "qdt": f"{_CII}:QualifiedDataType:100",
                "ram": f"{_CII}:ReusableAggregateBusinessInformationEntity:100",
                "rsm": f"{_CII}:CrossIndustryInvoice:100",
                "udt": f"{_CII}:UnqualifiedDataType:100",
            },
            "eforms": {
                **_UBL_PACK,
                "efac": f"{_EFORMS}-ubl-extension-aggregate-components/1",
                "efbc": f"{_EFORMS}-ubl-extension-basic-components/1",
                "efext": f"{_EFORMS}-ubl-extensions/1",
            },
            "feeds": {
                "content": "http://purl.org/rss/1.0/modules/content/",
                "dc": "http://purl.org/dc/elements/1.1/",
                "georss": "http://www.georss.org/georss",
                "media": "http://search.yahoo.com/mrss/",
            },
            "fhir": {"fhir": "http://hl7.org/fhir"},
            "gml": {"gml": "http://www.opengis.net/gml/3.2"},
            "gpx": {"gpx": "http://www.topografix.com/GPX/1/1"},
            "hl7": {"hl7": "urn:hl7-org:v3", "sdtc": "urn:hl7-org:sdtc"},
            "netconf": {"nc": "urn:ietf:params:xml:ns:netconf:base:1.0"},
            "newsml": {"newsml": "http://iptc.org/std/nar/2006-10-01/"},
            "rdf": {"rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#"},
            "siri": {"siri": "http://www.siri.org.uk/siri"},
            "soap": {
                "soap": "http://schemas.xmlsoap.org/soap/envelope/",
                "soap12": "http://www.w3.org/2003/05/soap-envelope",
                "wsse": f"{_WSS}-secext-1.0.xsd",
                "wsu": f"{_WSS}-utility-1.0.xsd",
            },
            "ubl": _UBL_PACK,
            "w3c": {
                "ds": "http://www.w3.org/2000/09/xmldsig#",
                "mml": "http://www.w3.org/1998/Math/MathML",
                "svg": "http://www.w3.org/2000/svg",
                "xhtml": "http://www.w3.org/1999/xhtml",
                "xlink": "http://www.w3.org/1999/xlink",
                "xs": "http://www.w3.org/2001/XMLSchema",
                "xsi": "http://www.w3.org/2001/XMLSchema-instance",
            },
            "xbrl": {
                "link": "http://www.xbrl.org/2003/linkbase",
                "xbrli": "http://www.xbrl.org/2003/instance",
            },
        }.items()
    }
)
"""Name of a vocabulary -> its prefixes -> their namespace URIs."""

_URIS: Final = MappingProxyType(
    {prefix: uri for pack in PREFIX_PACKS.values() for prefix, uri in pack.items()}
)

_PREFIXES: Final = MappingProxyType({uri: prefix for prefix, uri in _URIS.items()})


def usual_uri(prefix: str) -> str | None:
    """The namespace that a prefix usually stands for; None where there is no usual one."""
    return _URIS.get(prefix)


def usual_prefix(uri: str) -> str | None:
    """The prefix that is usual for a namespace; None where there is none.

    Example:
        >>> usual_prefix("http://www.w3.org/1999/xlink")
        'xlink'
    """
    return _PREFIXES.get(uri)


def binding(prefix: str, uri: str) -> str:
    """A binding as it is given to a program and to a command, to be pasted.

    Example:
        >>> binding("p", "urn:p")
        'namespaces={"p": "urn:p"} (--namespace p=urn:p)'
    """
    return f'namespaces={{"{prefix}": "{uri}"}} (--namespace {prefix}={uri})'
