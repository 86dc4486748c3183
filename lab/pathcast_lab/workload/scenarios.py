"""The two scenarios of the paper on chunking: a university's people, and an EJB descriptor.

Example:
    >>> scenario = SCENARIOS["university"]
    >>> scenario.queries(3, seed=1)[0]
    '//student/email'
    >>> len(SCENARIOS["ejb"].message(seed=0)) > 100_000
    True

The paper gives the DTDs, the number of tags and the size of the first message, the size of each
chunk, and for the second the elements of each chunk and the shares of queries. Messages are made to
these numbers. Which kind of person has which size, and what queries look like beyond "30 % // and
30 % filters", it does not say; here a kind's share of queries is chosen so that the potpourri of
each number of queries is the one of Figure 10.

Source: Lehner and Irmert, BTW 2003, section 5 and appendix A.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from types import MappingProxyType
from typing import Final

from pathcast.schema import parse_dtd
from pathcast_papers.message_broker.pathsharing.schema_paths import SchemaPaths

DESCENDANT_SHARE: Final = 0.3
FILTER_SHARE: Final = 0.3

UNIVERSITY_DTD: Final = """
<!ELEMENT db (student+,professor+,assistant+,secretary+,lecturer+)>
<!ELEMENT student (name,email?,url?,link?)> <!ATTLIST student id ID #REQUIRED>
<!ELEMENT professor (name,email?,url?,link?)> <!ATTLIST professor id ID #REQUIRED>
<!ELEMENT assistant (name,email?,url?,link?)> <!ATTLIST assistant id ID #REQUIRED>
<!ELEMENT secretary (name,email?,url?,link?)> <!ATTLIST secretary id ID #REQUIRED>
<!ELEMENT lecturer (name,email?,url?,link?)> <!ATTLIST lecturer id ID #REQUIRED>
<!ELEMENT name (#PCDATA)> <!ELEMENT email (#PCDATA)>
<!ELEMENT url (#PCDATA)> <!ATTLIST url href CDATA #REQUIRED>
<!ELEMENT link (#PCDATA)>
<!ATTLIST link manager IDREF #IMPLIED subordinates IDREFS #IMPLIED>
"""

EJB_DTD: Final = """
<!ELEMENT assembly-descriptor (container-transaction+, security-role+, method-permission+)>
<!ELEMENT cmp-field (field-name)>
<!ELEMENT container-transaction (method+, trans-attribute)>
<!ELEMENT ejb-jar (enterprise-beans, assembly-descriptor)>
<!ELEMENT ejb-ref (ejb-ref-name, ejb-ref-type, home, remote, ejb-link)>
<!ELEMENT enterprise-beans (message-driven, session+, entity+)>
<!ELEMENT entity (ejb-name, home, remote, ejb-class, persistence-type, prim-key-class, reentrant,
  cmp-field+, primkey-field?)>
<!ELEMENT message-driven (ejb-name, ejb-class, message-selector, transaction-type,
  acknowledge-mode, message-driven-destination, ejb-ref+)>
<!ELEMENT message-driven-destination (destination-type)>
<!ELEMENT message-selector EMPTY>
<!ELEMENT method (ejb-name | method | method-intf | method-name | method-params)*>
<!ELEMENT method-params (method-param*)>
<!ELEMENT method-permission (role-name, method+)>
<!ELEMENT run-as (role-name)> <!ELEMENT security-identity (run-as)>
<!ELEMENT security-role (description, role-name)>
<!ELEMENT session (ejb-class | ejb-name | ejb-ref | home | remote | security-identity
  | session-type | transaction-type)*>
""" + "".join(
    f"<!ELEMENT {name} (#PCDATA)>"
    for name in (
        *("acknowledge-mode", "description", "destination-type", "ejb-class", "ejb-link"),
        *("ejb-name", "ejb-ref-name", "ejb-ref-type", "field-name", "home", "method-intf"),
        *("method-name", "method-param", "persistence-type", "prim-key-class", "primkey-field"),
        *("reentrant", "remote", "role-name", "session-type", "trans-attribute"),
        "transaction-type",
    )
)


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of thing in a scenario, which a chunk may be cut at.

    Attributes:
        path: Where it stands.
        ends: What queries ask for below it; empty for itself.
        inner: Filters on the thing.
        outer: Filters on the element above it, which look beside the chunk.
        descendant: How `//` may stand before it.
    """

    path: str
    ends: tuple[str, ...]
    inner: tuple[str, ...]
    outer: tuple[str, ...] = ()
    descendant: tuple[str, ...] = ("/",)


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scenario of the paper.

    Attributes:
        name: Of it.
        dtd: Of its message, without a document type declaration around it.
        root: Its root element.
        kinds: What queries ask for.
        shares: Number of queries -> share of each kind; the key 0 stands for any other number.
        make: Makes the message from a seed.
    """

    name: str
    dtd: str
    root: str
    kinds: tuple[Kind, ...]
    shares: Mapping[int, Sequence[float]]
    make: Callable[[Random], str]

    def paths(self) -> SchemaPaths:
        """What its DTD says of paths.

        Raises:
            MissingDependencyError: lxml, which reads DTDs, is not installed.
        """
        return SchemaPaths(parse_dtd(self.dtd), root=self.root)

    def message(self, seed: int) -> bytes:
        """The message."""
        return self.make(Random(seed)).encode()

    def queries(self, count: int, seed: int) -> list[str]:
        """So many queries: each kind has its share, to the query; 30 % have `//`, 30 % a filter."""
        random = Random(seed)
        shares = self.shares.get(count, self.shares[0])
        counts = [int(count * share) for share in shares]
        counts[0] += count - sum(counts)
        drawn = [
            _query(random, kind)
            for kind, many in zip(self.kinds, counts, strict=True)
            for _ in range(many)
        ]
        random.shuffle(drawn)
        return drawn


def _query(random: Random, kind: Kind) -> str:
    above, _, name = kind.path.rpartition("/")
    has_descendant = random.random() < DESCENDANT_SHARE
    text = f"{above}/{name}"
    if random.random() < FILTER_SHARE:
        if kind.outer and random.randrange(2) == 0:
            # A filter above the chunk keeps the path to it in words.
            text = f"{above}[{random.choice(kind.outer)}]/{name}"
            if has_descendant:
                text = f"{above}[{random.choice(kind.outer)}]//{name}"
            return text + _end(random, kind)
        condition = random.choice(kind.inner).replace("#", str(random.randrange(10_000)))
        text = f"{text}[{condition}]"
    if has_descendant:
        text = f"{random.choice(kind.descendant)}/{text[len(above) + 1 :]}"
    return text + _end(random, kind)


def _end(random: Random, kind: Kind) -> str:
    end = random.choice(kind.ends)
    return f"/{end}" if end else ""


# --- Scenario 1 ------------------------------------------------------------------------------

_PEOPLE: Final = MappingProxyType(
    # Kilobytes of each chunk (A1); which kind has which, the paper does not say.
    {"student": 1537, "professor": 170, "assistant": 1233, "secretary": 206, "lecturer": 1145}
)
_TAGS: Final = 130_000
_MESSAGE_BYTES: Final = 4_850_000


def _person(name: str) -> Kind:
    return Kind(
        path=f"/db/{name}",
        ends=("", "name", "email", "url", "url/@href", "link", "link/@manager"),
        inner=("email", "url", "link/@manager", "@id='#'", "not(url)", "name='Name #'"),
        descendant=("/", "/db/"),
    )


def _university(random: Random) -> str:
    """People of five kinds, arbitrarily mixed; each kind has its share of 65,000 elements."""
    whole = sum(_PEOPLE.values())
    people: list[str] = []
    number = 0
    for kind, kilobytes in _PEOPLE.items():
        left = _TAGS // 2 * kilobytes // whole
        while left > 0:
            number += 1
            parts = [f"<name>Name {random.randrange(10_000)}</name>"]
            if random.randrange(4):
                address = f"person{number}.of.the.{kind}s@informatics.university.example.edu"
                parts.append(f"<email>{address}</email>")
            if random.randrange(4):
                site = f"http://www.cs.example.edu/{kind}/~person{number}/index.html"
                parts.append(f'<url href="{site}">home page of person {number}</url>')
            if random.randrange(4):
                boss = random.randrange(1, number + 1)
                room = f"building 1, second floor, room {random.randrange(1_000)}, extension 17"
                parts.append(f'<link manager="{boss}">works for person {boss}, {room}</link>')
            inner = "".join(f"\n    {part}" for part in parts)
            people.append(f'\n  <{kind} id="{number}">{inner}\n  </{kind}>')
            left -= 1 + len(parts)
    random.shuffle(people)
    text = "<db>" + "".join(people) + "\n</db>"
    # The rest is white space between people, which chunks leave out.
    gap = "\n" * ((_MESSAGE_BYTES - len(text)) // len(people))
    return "<db>" + gap.join(people) + "\n</db>"


# --- Scenario 2 ------------------------------------------------------------------------------


def _leaf(name: str, random: Random) -> str:
    return f"<{name}>{name} {random.randrange(100)}</{name}>"


def _element(name: str, parts: Sequence[str]) -> str:
    return f"<{name}>{''.join(parts)}</{name}>"


def _method(random: Random, children: int) -> str:
    names = ("ejb-name", "method-name", "method-intf")
    return _element("method", [_leaf(name, random) for name in names[:children]])


def _reference(random: Random) -> str:
    names = ("ejb-ref-name", "ejb-ref-type", "home", "remote", "ejb-link")
    return _element("ejb-ref", [_leaf(name, random) for name in names])


def _session(random: Random, *, has_transaction_type: bool) -> str:
    names = ["ejb-name", "home", "remote", "ejb-class", "session-type"]
    if has_transaction_type:
        names.append("transaction-type")
    run_as = _element("run-as", [_leaf("role-name", random)])
    parts = [_leaf(name, random) for name in names]
    parts.append(_element("security-identity", [run_as]))
    return _element("session", [*parts, _reference(random), _reference(random)])


def _entity(random: Random, fields: int, *, has_key: bool) -> str:
    names = ("ejb-name", "home", "remote", "ejb-class", "persistence-type", "prim-key-class")
    parts = [_leaf(name, random) for name in (*names, "reentrant")]
    parts += [_element("cmp-field", [_leaf("field-name", random)]) for _ in range(fields)]
    return _element("entity", [*parts, _leaf("primkey-field", random)] if has_key else parts)


def _ejb(random: Random) -> str:
    """The elements of A3: 1,351, 2,583, 41, 162, 44 and 497 with those above and filter nodes."""
    names = ("ejb-name", "ejb-class")
    driven = [_leaf(name, random) for name in names]
    driven += ["<message-selector/>", _leaf("transaction-type", random)]
    driven.append(_leaf("acknowledge-mode", random))
    driven.append(_element("message-driven-destination", [_leaf("destination-type", random)]))
    driven += [_reference(random) for _ in range(5)]
    beans = [_element("message-driven", driven)]
    beans += [_session(random, has_transaction_type=number > 0) for number in range(7)]
    beans += [_entity(random, 31 if number < 5 else 30, has_key=number < 2) for number in range(7)]
    transactions = [
        _element(
            "container-transaction",
            [_method(random, 1 if number == 0 else 2), _leaf("trans-attribute", random)],
        )
        for number in range(270)
    ]
    roles = [
        _element("security-role", [_leaf("description", random), _leaf("role-name", random)])
        for _ in range(13)
    ]
    permissions = [
        _element(
            "method-permission",
            [_leaf("role-name", random), _method(random, 3 if number == 0 else 2)],
        )
        for number in range(516)
    ]
    descriptor = _element("assembly-descriptor", [*transactions, *roles, *permissions])
    return _element("ejb-jar", [_element("enterprise-beans", beans), descriptor])


_DESCRIPTOR: Final = "/ejb-jar/assembly-descriptor"
_BEANS: Final = "/ejb-jar/enterprise-beans"

SCENARIOS: Final[Mapping[str, Scenario]] = MappingProxyType(
    {
        "university": Scenario(
            name="university",
            dtd=UNIVERSITY_DTD,
            root="db",
            kinds=tuple(_person(name) for name in _PEOPLE),
            shares=MappingProxyType(
                # Student, professor, assistant, secretary, lecturer: the least is the potpourri of
                # four chunks, the two least that of three.
                {
                    100: (0.14, 0.22, 0.24, 0.21, 0.19),
                    500: (0.21, 0.22, 0.24, 0.14, 0.19),
                    2_000: (0.24, 0.14, 0.22, 0.19, 0.21),
                    0: (0.2, 0.2, 0.2, 0.2, 0.2),
                }
            ),
            make=_university,
        ),
        "ejb": Scenario(
            name="ejb",
            dtd=EJB_DTD,
            root="ejb-jar",
            kinds=(
                Kind(
                    f"{_DESCRIPTOR}/container-transaction",
                    ("", "method", "method/ejb-name", "trans-attribute", "method//method-name"),
                    ("method/ejb-name", "trans-attribute='trans-attribute 7'", "method/method"),
                ),
                Kind(
                    f"{_DESCRIPTOR}/method-permission",
                    ("", "method", "role-name", "method//ejb-name"),
                    ("method/method-intf", "role-name='role-name 7'", "not(method/method)"),
                ),
                Kind(
                    f"{_DESCRIPTOR}/security-role",
                    ("", "description", "role-name"),
                    ("description", "role-name='role-name 7'"),
                ),
                Kind(
                    f"{_BEANS}/session",
                    ("", "ejb-name", "ejb-ref/home", "security-identity//role-name"),
                    ("transaction-type", "ejb-name='ejb-name 7'", "ejb-ref[2]"),
                    ("entity",),
                ),
                Kind(
                    f"{_BEANS}/message-driven",
                    ("", "ejb-name", "ejb-ref/ejb-link", "message-driven-destination"),
                    ("acknowledge-mode", "ejb-ref/home", "count(ejb-ref) > 3"),
                    ("entity/primkey-field",),
                ),
                Kind(
                    f"{_BEANS}/entity",
                    ("", "ejb-name", "cmp-field", "cmp-field/field-name", "primkey-field"),
                    ("primkey-field", "ejb-name='ejb-name 7'", "cmp-field[30]"),
                    ("session",),
                ),
            ),
            shares=MappingProxyType({0: (0.191, 0.18, 0.17, 0.163, 0.152, 0.144)}),
            make=_ejb,
        ),
    }
)
"""Name -> scenario."""
