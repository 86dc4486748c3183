"""Subscribers come and go while messages flow; `explain` says why a query did not match."""

from pathcast import Query, QueryIndex

MESSAGE = b"<alert severity='severe'><area>coast</area><event>storm</event></alert>"


def main() -> None:
    index = QueryIndex()
    index.register([Query("storms", "/alert[event='storm']")])
    matcher = index.matcher()

    def deliver() -> None:
        [result] = matcher.match([MESSAGE])
        print(list(result.query_ids))

    deliver()
    index.register([Query("severe", "/alert[@severity='severe']/area")])
    deliver()
    index.remove(["storms"])
    deliver()
    # Removal is lazy; this gives back the space.
    index.compact()
    deliver()

    index.register([Query("inland", "/alert[area='inland']")])
    print(index.freeze().explain("inland", MESSAGE))


if __name__ == "__main__":
    main()
