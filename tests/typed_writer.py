"""Random subscriptions and messages about dates, times, numbers and booleans, at their borders."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from xquery_writer import Writer

BORDERS: Final = MappingProxyType(
    {
        "date": (
            *("2024-02-29", "2023-02-29", "2000-02-29", "1900-02-29", "2026-12-31", "2026-12-31Z"),
            *("2026-12-31+14:00", "2027-01-01-14:00", "2026-12-31-00:00", "2026-12-31+14:01"),
            *("0000-01-01", "-0001-12-31", "0001-01-01", "-0004-02-29", "0000-02-29"),
            *("12026-01-01", "02026-01-01", "226-01-01", "-12026-01-01", "123456789-01-01"),
            *(" 2024-03-01\n", "2024-3-01", "2024-13-01", "2024-04-31", "2024-00-10", "2024-10-00"),
            *("2024-01-01+5:00", "2024-01-01+05:60", "2024-01-01z", "+2024-01-01", "2024-01-01 Z"),
        ),
        "dateTime": (
            *("2024-02-29T00:00:00", "2024-02-28T24:00:00", "2024-02-28T24:00:00.000Z"),
            *("2024-02-28T24:00:01", "2024-02-28T23:59:60", "2024-02-28T23:59:59.999999999"),
            *("2024-02-28T18:30:00-05:30", "2024-02-29T14:00:00+14:00", "1999-12-31T24:00:00"),
            *("0000-01-01T00:00:00", "-0001-12-31T24:00:00Z", "0001-01-01T00:00:00+00:01"),
            *("2024-02-29T00:00:00.0", "2024-02-29T00:00:00.10Z", "2024-02-29T00:00:00.100-00:00"),
            *(
                "2024-02-29T00:00",
                "2024-02-29 00:00:00",
                "2024-02-29T00:00:00.",
                "2024-02-29t00:00:00",
            ),
            *(
                " 2024-02-29T00:00:00Z ",
                "2024-02-29T25:00:00",
                "2024-02-29T00:60:00",
                "2399-12-31T24:00:00",
            ),
        ),
        "time": (
            *("00:00:00", "24:00:00", "24:00:00.00", "24:00:00.01", "23:59:59.999", "12:00:00Z"),
            *("12:00:00+01:00", "11:00:00", "23:00:00-05:00", "04:00:00Z", "1:00:00", "12:00"),
            *("00:00:00+14:00", "00:00:00-14:00", "12:00:60", " 12:00:00.5 ", "12:00:00,5"),
        ),
        "dayTimeDuration": (
            *("P30D", "PT720H", "P29DT24H", "-P30D", "PT0S", "P0D", "-PT0S", "PT36H", "P1DT12H"),
            *("PT0.5S", "-PT0.5S", "PT1M1.25S", "PT61.250S", "PT0.000000001S", "PT1H1M", " P1D\n"),
            *("P", "PT", "P1DT", "P1M", "P1Y", "1D", "+P1D", "PT1.5H", "PT5.S", "PT1S1M", "P1D1D"),
            *("P-1D", "p1d", "P1 D", "P999999999999D", "P0000000000000001D"),
        ),
        "yearMonthDuration": (
            *("P1Y", "P12M", "P1Y1M", "P13M", "-P13M", "P0M", "P0Y", "-P0M", "P999M", " P1Y "),
            *("P", "P1D", "P1YT1M", "P1M1Y", "PT1M", "P1.5Y", "1Y", "P1Y2Y", "+P1Y"),
        ),
        "double": ("1e3", "INF", "+INF", "-INF", "NaN", "-0", ".5", "5.", "0x1", "1e", "", " 7 "),
        "decimal": ("1.50", "+1.5", "-.5", "5.", ".", "1e3", "INF", "0012", "1.2.3", "-0.0"),
        "integer": ("12", "+12", "-0", "1.0", "1e3", " 007 ", "9007199254740993", "1 2", "--1"),
        "boolean": ("true", "false", "1", "0", " true ", "TRUE", "yes", "", "01"),
        "string": ("", " a  b ", "2026-01-01"),
    }
)
"""Types -> texts of values at their borders, and of some that are none."""

_LEGAL: Final = MappingProxyType(
    {
        "date": ("2024-02-29", "2026-12-31Z", "2024-03-01+14:00", "-0001-12-31", "0000-01-01"),
        "dateTime": ("2024-02-29T00:00:00", "2024-02-28T24:00:00Z", "0000-01-01T00:00:00"),
        "time": ("12:00:00", "24:00:00", "11:00:00Z", "23:59:59.999-05:00"),
        "dayTimeDuration": ("P30D", "PT720H", "-PT0.5S", "PT0S", "P1DT12H"),
        "yearMonthDuration": ("P1Y", "P12M", "-P13M", "P0M"),
        "double": ("INF", "1e3", "-0", "NaN"),
        "decimal": ("1.5", "-.5", "12"),
        "integer": ("12", "-7", "0"),
        "boolean": ("true", "0"),
        "string": ("2024-02-29", "", "12"),
    }
)


class TypedWriter(Writer):
    """Writes subscriptions that cast, and compare, order and choose among what was cast."""

    values = (*(text for texts in BORDERS.values() for text in texts), *Writer.values)

    def element(self, depth: int) -> str:
        return super().element(max(depth, 2))

    def number(self, depth: int) -> str:
        return Writer.value(self, depth)

    def value(self, depth: int) -> str:
        to = self.one(*_LEGAL)
        match self.random.randrange(10):
            case 0 | 1 | 2:
                return self.constant(to)
            case 3:
                return f"({self.constant(to)}, {self.constant(self.one(to, *_LEGAL))})"
            case 4 | 5:
                return f"xs:{to}({self.nodes(0)})"
            case 6:
                return f"({self.nodes(0)} cast as xs:{to}{self.one('', '?')})"
            case 7:
                function = self.one("min", "max", "data", "string", "distinct-values", "count")
                name = self.bind([])
                each = f"for {name} in {self.nodes(0)} return xs:{to}({name})"
                return f"{function}({each})"
            case 8:
                return f"xs:{self.one(*_LEGAL)}(xs:{to}({self.nodes(0)}))"
            case _:
                return super().value(depth)

    def constant(self, to: str) -> str:
        return f"xs:{to}('{self.one(*_LEGAL[to])}')"

    def items(self, depth: int) -> str:
        if self.chance(3):
            return f"(<v>{{{self.value(0)}}}</v>, {self.nodes(0)})"
        return super().items(depth)

    def condition(self, depth: int) -> str:
        match self.random.randrange(8):
            case 0:
                return f"{self.nodes(0)} castable as xs:{self.one(*_LEGAL)}{self.one('', '?')}"
            case 1:
                return f"{self.value(0)} castable as xs:{self.one(*_LEGAL)}"
            case _:
                return super().condition(depth)
