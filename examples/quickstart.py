"""Two standing queries, three messages: what matches, and what becomes of a broken message."""

from pathcast import Query, Registry

MESSAGES = [
    b"<order><total>120</total><item sku='a1'/></order>",
    b"<order><total>80</total><item sku='b2'/></order>",
    b"<order><total>80</order>",
]


def main() -> None:
    registry = Registry()
    report = registry.add(
        [
            Query("large", "/order[total > 100]"),
            Query("b2-anywhere", "//item[@sku='b2']"),
            Query("typo", "/order["),
        ]
    )
    for query_id, error in report.rejected.items():
        print(f"{query_id} was not registered: {error}")
    for result in registry.match(MESSAGES):
        print(result.error or list(result.query_ids))


if __name__ == "__main__":
    main()
