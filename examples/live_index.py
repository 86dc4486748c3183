"""Subscribers come and go while messages flow; `explain` says why a query did not match."""

from pathcast import Query, Registry

MESSAGE = b"<alert severity='severe'><area>coast</area><event>storm</event></alert>"


def main() -> None:
    registry = Registry()
    registry.add([Query("storms", "/alert[event='storm']")])

    def match() -> None:
        print(list(registry.match(MESSAGE).query_ids))

    match()
    registry.add([Query("severe", "/alert[@severity='severe']/area")])
    match()
    registry.remove(["storms"])
    match()

    registry.add([Query("inland", "/alert[area='inland']")])
    print(registry.explain("inland", MESSAGE))


if __name__ == "__main__":
    main()
