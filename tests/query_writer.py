"""Random queries of the evaluated language, each written in several notations.

A `Path` says what a query asks; a `Writer` writes it down, choosing among notations that mean the
same. All choices come from the `random.Random` given, so a test that prints its seed, or a strategy
that draws one, can repeat them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random

from generators.string_text import joined_string, written_string

NAMES = ("a", "b", "*")
ATTRIBUTES = ("x", "y", "*")
STRINGS = ("", "u", "it's", 'say "u"', "1", " 2 ", "'\"", "'\"][@y='u")
NUMBERS = (0.0, 1.0, 2.0, -1.0, 2.5)
OPERATORS = ("=", "!=", "<", "<=", ">", ">=")
FLIPPED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True)
class Compare:
    operator: str
    constant: float | str


@dataclass(frozen=True)
class Path:
    """Steps, and an end: none, "@name", or "text()"."""

    steps: tuple[Step, ...]
    end: str = ""
    is_end_deep: bool = False
    compare: Compare | None = None


@dataclass(frozen=True)
class Stage:
    positions: tuple[tuple[str, float], ...] = ()
    conditions: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Step:
    is_deep: bool
    name: str
    stages: tuple[Stage, ...] = ()


@dataclass
class Maker:
    """Makes random paths."""

    random: Random
    budget: int = 12

    def query(self) -> Path:
        path = self.path(depth=0)
        return path if path.steps else replace(path, steps=(Step(False, "*"),))

    def path(self, depth: int) -> Path:
        at_least = 1 if depth == 0 else 0
        count = self.random.randint(at_least, 4 if depth == 0 else 2)
        steps = tuple(self.step(depth) for _ in range(count))
        end = ""
        if self.random.random() < 0.4:
            end = self.random.choice(("text()", *("@" + name for name in ATTRIBUTES)))
        is_deep = bool(end) and self.random.random() < 0.3
        compare = None
        if depth and (self.random.random() < 0.5 or not (steps or end)):
            constant = self.random.choice((*STRINGS, *NUMBERS))
            compare = Compare(self.random.choice(OPERATORS), constant)
        return Path(steps, end, is_deep, compare)

    def step(self, depth: int) -> Step:
        is_deep = self.random.random() < 0.35
        return Step(is_deep, self.random.choice(NAMES), self.stages(depth))

    def stages(self, depth: int) -> tuple[Stage, ...]:
        if depth > 2 or self.budget <= 0 or self.random.random() < 0.5:
            return ()
        stages = []
        for index in range(self.random.randint(1, 2)):
            positions: tuple[tuple[str, float], ...] = ()
            if index or self.random.random() < 0.3:
                positions = tuple(self.position() for _ in range(self.random.randint(1, 2)))
            conditions = []
            for _ in range(self.random.randint(0 if positions else 1, 2)):
                self.budget -= 1
                conditions.append(self.path(depth + 1))
            stages.append(Stage(positions, tuple(conditions)))
        return tuple(stages)

    def position(self) -> tuple[str, float]:
        return self.random.choice(OPERATORS), float(self.random.randint(0, 3))


@dataclass
class Gardener:
    """Moves branches: what leads on from a step becomes a nested path, a nested path leads on.

    Only the conditions of a last stage move. The path asks the same as before.
    """

    random: Random

    def moved(self, path: Path, *, is_main: bool = True) -> Path:
        rest = replace(path, steps=())
        for index in reversed(range(len(path.steps))):
            step = path.steps[index]
            stages = [
                replace(stage, conditions=tuple(self.inside(each) for each in stage.conditions))
                for stage in step.stages
            ]
            last = stages.pop() if stages else Stage()
            branches = list(last.conditions)
            if rest.steps or rest.end or rest.compare:
                branches.append(rest)
            rest = Path(())
            # A comparison stands in a predicate.
            able = [branch for branch in branches if not (is_main and branch.compare)]
            if able and self.random.random() < 0.8:
                rest = self.random.choice(able)
                branches.remove(rest)
            self.random.shuffle(branches)
            last = replace(last, conditions=tuple(branches))
            if last.positions or last.conditions:
                stages.append(last)
            rest = replace(rest, steps=(replace(step, stages=tuple(stages)), *rest.steps))
        return rest

    def inside(self, path: Path) -> Path:
        return self.moved(path, is_main=False)


@dataclass
class Writer:
    """Writes a path down.

    Attributes:
        random: Where the choices come from.
        is_plain: Only XPath 1.0, and absolute: what lxml reads too.
        is_usual: Only notations that the kernel's compiler takes.
    """

    random: Random
    is_plain: bool = False
    is_usual: bool = False
    tokens: list[str] = field(default_factory=list)

    def write(self, path: Path) -> str:
        self.tokens = []
        self.main(path)
        if not self.is_usual and self.chance(0.1):
            self.tokens = ["(", *self.tokens, ")"]
        text = ""
        for token in self.tokens:
            text += self.blank() if token != " and " else ""
            text += token
        return text + self.blank()

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def blank(self) -> str:
        return self.random.choice((" ", "\n", "\t ")) if self.chance(0.1) else ""

    def put(self, *tokens: str) -> None:
        self.tokens.extend(tokens)

    def main(self, path: Path) -> None:
        start = "/"
        if not self.is_plain:
            start = self.random.choice(("/", "/", "/", "", "$msg", "document('d')"))
        if start in ("$msg", "document('d')"):
            self.put(start)
        self.steps(path, is_relative=start == "")

    def steps(self, path: Path, *, is_relative: bool) -> None:
        """The steps and the end; a relative path has no slash before its first step."""
        deep = [step.is_deep for step in self.shuffled(path.steps)]
        for step, is_deep in zip(path.steps, deep, strict=True):
            has_positions = any(stage.positions for stage in step.stages)
            axis = self.separator(is_deep, "child", is_relative, has_positions=has_positions)
            self.put(axis + step.name)
            is_relative = False
            for stage in step.stages:
                self.stage(stage)
        if path.end:
            kind = "attribute" if path.end.startswith("@") else "child"
            # The descendants of an element do not have its own attributes and text.
            axis = self.separator(path.is_end_deep, kind, is_relative, has_positions=True)
            if kind == "child":
                self.put(axis + "text", "(", ")")
            elif axis:
                self.put(axis + path.end[1:])
            else:
                self.put("@", path.end[1:])
        elif not path.steps:
            self.put("." if self.is_usual or self.chance(0.7) else "self::node()")

    def separator(self, is_deep: bool, kind: str, is_relative: bool, *, has_positions: bool) -> str:
        """What leads to a step; returns the axis that is written out, if one is."""
        explicit = not self.is_usual and self.chance(0.2)
        if is_relative and is_deep:
            if not has_positions and explicit and self.chance(0.5):
                return "descendant::"
            self.put("." if self.is_usual or self.chance(0.8) else "self::node()")
        if is_relative and not is_deep:
            if self.chance(0.1):
                self.put(".", "/")
        elif not is_deep:
            self.put("/")
            if self.chance(0.1):
                self.put(".", "/")
        elif not has_positions and explicit and self.chance(0.5):
            self.put("/")
            return "descendant::"
        elif not self.is_usual and self.chance(0.1):
            self.put("/", "descendant-or-self::node()", "/")
        else:
            self.put("//")
            if self.chance(0.1):
                self.put(".", self.random.choice(("/", "//")))
        return f"{kind}::" if explicit else ""

    def shuffled(self, written: tuple[Step, ...]) -> list[Step]:
        """`//` put elsewhere in runs of bare wildcards and the step after each."""
        steps = list(written)
        start = 0
        for index in range(len(steps) + 1):
            if index < len(steps) and steps[index].name == "*" and not steps[index].stages:
                continue
            run = range(start, min(index + 1, len(steps)))
            start = index + 1
            if len(run) > 1 and any(steps[at].is_deep for at in run):
                kept = self.random.choice(run)
                for at in run:
                    is_deep = at == kept or self.chance(0.3)
                    steps[at] = replace(steps[at], is_deep=is_deep)
        return steps

    def stage(self, stage: Stage) -> None:
        """One predicate with all positions, and the conditions there or in others."""
        conditions = list(stage.conditions)
        if self.chance(0.2):
            conditions.extend(conditions[:1])
        self.random.shuffle(conditions)
        positions = list(stage.positions)
        self.random.shuffle(positions)
        while positions or conditions:
            count = self.random.randint(0 if positions else 1, len(conditions))
            parts: list[tuple[str, float] | Path] = [*positions, *conditions[:count]]
            self.random.shuffle(parts)
            if self.chance(0.1) and not self.is_plain:
                self.put("/")
            self.put("[")
            if len(parts) == 1 and positions and positions[0][0] == "=" and self.chance(0.5):
                self.number(positions[0][1])
            else:
                self.conjunction(parts)
            self.put("]")
            positions, conditions = [], conditions[count:]

    def conjunction(self, parts: list[tuple[str, float] | Path]) -> None:
        for index, part in enumerate(parts):
            if index:
                self.put(" and ")
            has_parentheses = not self.is_usual and self.chance(0.1)
            self.put(*("(" * has_parentheses))
            if isinstance(part, Path):
                self.condition(part)
            else:
                self.comparison(Compare(*part), lambda: self.put("position", "(", ")"))
            self.put(*(")" * has_parentheses))

    def condition(self, path: Path) -> None:
        if path.compare is None:
            self.steps(path, is_relative=True)
        else:
            self.comparison(path.compare, lambda: self.steps(path, is_relative=True))

    def comparison(self, compare: Compare, write_path: Callable[[], None]) -> None:
        if self.chance(0.3):
            self.constant(compare)
            self.operator(FLIPPED[compare.operator])
            write_path()
        else:
            write_path()
            self.operator(compare.operator)
            self.constant(compare)

    def operator(self, operator: str) -> None:
        is_paper = operator == "!=" and not self.is_plain and self.chance(0.3)
        self.put("<>" if is_paper else operator)

    def constant(self, compare: Compare) -> None:
        if isinstance(compare.constant, float):
            self.number(compare.constant)
        else:
            write = joined_string if self.is_usual else written_string
            self.put(write(self.random, compare.constant))

    def number(self, number: float) -> None:
        if number < 0:
            self.put("-")
        text = repr(abs(number))
        if text.endswith(".0"):
            text = self.random.choice((text, text[:-2], text[:-2], text[:-1], "0" + text))
        self.put(text)
