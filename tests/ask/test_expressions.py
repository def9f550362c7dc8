"""What is written is read, what cannot be is marked, and boxes are what a condition says of every row."""

from __future__ import annotations

import itertools
import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fields import make_field
from made.ask.boxes import MOST_BOXES, _Algebra, boxes_of, common, everything, is_points, values_in
from made.ask.expressions import And, Comparison, Membership, Not, Or, Query, Range
from made.ask.parser import MOST_NESTED, parse
from made.columns.base import MISSING
from made.errors import QuestionError
from made.tables.dates import DAY
from questions import MORE, holds

FIELDS = [
    make_field("age", "numeric", location=40.0, scale=10.0, step=1.0, dtype="int"),
    make_field("income", "numeric", location=100.0, scale=50.0),
    make_field("job", "categorical", ("fixed", "freelance", "it's me", "or"), dtype="text"),
    make_field("home town", "binary", ("rent", "own"), dtype="text"),
    make_field("smokes", "binary", (False, True), dtype="bool"),
    make_field("children", "categorical", (0, 1, 2, 5), dtype="int"),
    make_field("2021", "numeric", location=0.0, scale=1.0),
    make_field("hours-per-week", "numeric", location=40.0, scale=5.0, step=0.5),
]
KINDS = [field.column for field in FIELDS]
NAMES = [field.name for field in FIELDS]


def contains(region, value) -> bool:
    return any(low <= value < high for low, high in region)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("age<30", "age < 30"),
        ("30 > age", "age < 30"),
        ("age == 30.50", "age = 30.5"),
        ("age <> 3 or age ≠ 4", "age != 3 or age != 4"),
        ("age ≤ -3e2", "age <= -300"),
        ("age between 20 and 30 and smokes=TRUE", "20 <= age <= 30 and smokes = true"),
        ("age not between 20 and 30", "not 20 <= age <= 30"),
        ("30 >= age > 20", "20 < age <= 30"),
        ("'fixed' = job", "job = 'fixed'"),
        ("fixed = job", "job = 'fixed'"),
        ("job = fixed and (age < 3 or age > 4)", "job = 'fixed' and (age < 3 or age > 4)"),
        ("job = fixed and age < 3 or age > 4", "(job = 'fixed' and age < 3) or age > 4"),
        ('NOT job = "it\'s me"', "not job = 'it''s me'"),
        ("job='it''s me'", "job = 'it''s me'"),
        ("job in ('or', fixed, fixed)", "job in {'or', 'fixed'}"),
        ("job not in [fixed]", "job not in {'fixed'}"),
        ("not not job in {fixed}", "not job not in {'fixed'}"),
        ('`home town` = rent and "home town" != own', "`home town` = 'rent' and `home town` != 'own'"),
        ("children > 1.5 and children in {0, 5}", "children > 1.5 and children in {0, 5}"),
        ("`2021` > 2021", "`2021` > 2021"),
        ("hours-per-week<=-1", "hours-per-week <= -1"),
        ("smokes = 1 | (age < 30)", "smokes = true | age < 30"),
        ("age < 1 and (age < 2 and age < 3)", "age < 1 and age < 2 and age < 3"),
        ("income = '50'", "income = 50"),
        ("age\n<\t30", "age < 30"),
        ("P(age < 30)", "age < 30"),
        ("P ((age < 30) or age > 40 | smokes = 1)", "age < 30 or age > 40 | smokes = true"),
    ],
)
def test_parsed_questions_round_trip_through_their_text(text, read) -> None:
    query = parse(text, FIELDS)
    assert str(query) == read
    assert parse(str(query), FIELDS) == query


def atoms() -> st.SearchStrategy:
    numbers = st.one_of(st.integers(-5, 80), st.sampled_from([0.5, 17.25, -1e22, 1e-3])).map(float)
    order = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
    words = {field.name: list(field.values) for field in FIELDS if field.values}
    numeric = st.sampled_from([field.name for field in FIELDS if field.kind == "numeric"] + ["children"])

    def compared(name):
        values = st.sampled_from(words[name])
        several = st.lists(values, min_size=1, unique=True).map(tuple)
        equal = st.builds(Comparison, st.just(name), st.sampled_from(["=", "!="]), values)
        return equal | st.builds(Membership, st.just(name), several)

    real = [field.name for field in FIELDS if field.kind == "numeric"]
    ends = st.sampled_from(["<", "<="])
    return st.one_of(
        st.sampled_from(list(words)).flatmap(compared),
        st.builds(Comparison, st.sampled_from(real), order, numbers),
        st.builds(Comparison, numeric, st.sampled_from(["<", "<=", ">", ">="]), numbers),
        st.builds(Membership, st.sampled_from(real), st.lists(numbers, min_size=1, max_size=3, unique=True).map(tuple)),
        st.builds(Range, numbers, ends, numeric, ends, numbers),
    )


def joined(parts: st.SearchStrategy) -> st.SearchStrategy:
    def flat(kind, several):
        return kind(tuple(x for each in several for x in (each.parts if isinstance(each, kind) else (each,))))

    several = st.lists(parts, min_size=2, max_size=3)
    return st.one_of(
        st.builds(Not, parts), st.builds(flat, st.just(And), several), st.builds(flat, st.just(Or), several)
    )


CONDITIONS = st.recursive(atoms(), joined, max_leaves=7)


@settings(max_examples=200)
@given(CONDITIONS, st.none() | CONDITIONS)
def test_random_conditions_round_trip_through_their_text(asked, condition) -> None:
    query = Query(asked, condition)
    assert parse(str(query), FIELDS) == query


@settings(max_examples=100)
@given(CONDITIONS, st.data())
def test_boxes_hold_exactly_the_rows_that_fulfil_a_condition(condition, data) -> None:
    """No row is in two boxes; rows are drawn from where something may change: at, below and above each value."""
    boxes = boxes_of(condition, FIELDS, KINDS)

    def numbers(part) -> list[float]:
        if isinstance(part, Not):
            return numbers(part.part)
        if isinstance(part, (And, Or)):
            return [number for each in part.parts for number in numbers(each)]
        several = [getattr(part, key, None) for key in ("value", "low", "high")] + list(getattr(part, "values", ()))
        return [float(each) for each in several if isinstance(each, (int, float)) and not isinstance(each, bool)]

    critical = [*numbers(condition), 30.0]
    near = sorted({x for each in critical for x in (each, each - 1, each + 1, each - 1e-6, each + 1e-6)})
    for _ in range(10):
        row, codes = {}, []
        for field, kind in zip(FIELDS, KINDS, strict=True):
            if field.values:
                code = data.draw(st.integers(0, len(field.values) - 1))
                codes.append(float(code))
                row[field.name] = field.values[code]
                continue
            value = data.draw(st.sampled_from(near))
            if kind.step:
                value = kind.location + round((value - kind.location) / kind.step) * kind.step
            codes.append(value)
            row[field.name] = value
        inside = [all(contains(region, codes[d]) for d, region in box.items()) for box in boxes]
        assert sum(inside) == holds(condition, row), (str(condition), row)


def boxes(text):
    return boxes_of(parse(text, FIELDS).asked, FIELDS, KINDS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("age < 30 or age >= 30", [{}]),
        ("age < 20 and age > 30", []),
        ("30 < age < 31 or age = 30.5", []),
        ("age <= 30.7", [{0: ((-math.inf, 30.5),)}]),
        ("age < 31", [{0: ((-math.inf, 30.5),)}]),
        ("age < 20 or 25 < age < 28 or age = 20", [{0: ((-math.inf, 20.5), (25.5, 27.5))}]),
        ("job in {fixed, freelance} or job = 'it''s me' or job = 'or'", [{}]),
        ("income <= 5 or income > 5", [{}]),
        ("smokes = true or smokes = false", [{}]),
        ("(job = fixed and age < 30) or (job = fixed and age >= 30)", [{2: ((-0.5, 0.5),)}]),
    ],
)
def test_boxes_are_merged(text, expected) -> None:
    assert boxes(text) == expected


def test_conditions_on_different_columns_are_boxes_that_do_not_overlap() -> None:
    assert len(boxes("job = fixed or age < 30 or smokes = true")) == 3


@pytest.mark.parametrize(
    ("text", "d", "points", "values"),
    [
        ("income = 5", 1, True, [5.0]),
        ("18 <= age < 21", 0, False, [18.0, 19.0, 20.0]),
        ("hours-per-week between 1 and 2", 7, False, [1.0, 1.5, 2.0]),
    ],
)
def test_the_values_in_a_box_are_listed(text, d, points, values) -> None:
    (box,) = boxes(text)
    assert is_points(box[d], KINDS[d]) == points
    assert values_in(box[d], KINDS[d], 10) == values


def test_more_values_than_allowed_are_not_listed() -> None:
    assert values_in(boxes("18 <= age < 21")[0][0], KINDS[0], 2) is None


def test_all_values_of_a_listed_column_are_listed() -> None:
    assert values_in(everything(KINDS[5]), KINDS[5], 10) == [0.0, 1.0, 2.0, 3.0]


def ranges(count, width, name="income") -> str:
    return " or ".join(f"{i} <= {name} < {i + width}" for i in range(count))


def test_many_ranges_of_one_column_are_sorted_not_compared_with_each_other() -> None:
    income = NAMES.index("income")
    for text, count in ((ranges(3000, 0.5), 3000), (ranges(3000, 1.5), 1)):
        algebra = _Algebra(KINDS, FIELDS)
        (box,) = algebra.boxes(parse(text, FIELDS).asked, False)
        assert len(box[income]) == count
        assert algebra.steps < 20 * 3000
        algebra = _Algebra(KINDS, FIELDS)
        (other,) = algebra.boxes(parse(f"not ({text})", FIELDS).asked, False)
        assert len(other[income]) == count + 1
        assert algebra.steps < 20 * 3000
        for value in (-1.0, 0.0, 0.25, 0.5, 0.75, 1700.25, 1700.75, 2999.75, 3001.0):
            inside = any(i <= value < i + (0.5 if count > 1 else 1.5) for i in range(3000))
            assert contains(box[income], value) == inside
            assert contains(other[income], value) == (not inside)


def test_boxes_that_differ_in_one_column_are_merged_before_they_are_made_disjoint() -> None:
    text = " or ".join(f"({i} <= income < {i + 0.5} and age = 30)" for i in range(1500))
    algebra = _Algebra(KINDS, FIELDS)
    (box,) = algebra.boxes(parse(text, FIELDS).asked, False)
    assert len(box[NAMES.index("income")]) == 1500
    assert algebra.steps < 20 * 1500


def test_a_long_list_of_values_is_looked_up() -> None:
    many = [make_field("code", "categorical", tuple(f"v{i}" for i in range(1000)), dtype="text")]
    text = f"code in {{{', '.join(f'v{i % 500}' for i in range(20_000))}}}"
    assert boxes_of(parse(text, many).asked, many, [many[0].column]) == [{0: ((-0.5, 499.5),)}]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (" or ".join(f"({i} < income < {i + 0.5} and {i} < `2021` < {i + 0.5})" for i in range(2000)), "steps"),
        (" and ".join(f"(income < {i} or `2021` > {i})" for i in range(2000)), "steps"),
        (" or ".join(["age = 1"] * 130_000), "characters"),
    ],
)
def test_conditions_of_too_many_steps_are_refused(text, said) -> None:
    with pytest.raises(QuestionError, match=said):
        boxes_of(parse(text, FIELDS).asked, FIELDS, KINDS)


def test_an_error_in_a_long_question_shows_the_place_only() -> None:
    with pytest.raises(QuestionError) as caught:
        parse(f"{ranges(400, 0.5)} or incme > 3 or {ranges(400, 0.5)}", FIELDS)
    _, shown, mark = str(caught.value).split("\n")
    assert len(shown) < 300
    assert shown[mark.index("^") : mark.rindex("^") + 1] == "incme"


def test_too_many_boxes_are_refused() -> None:
    fields = [make_field(f"x{d}", "numeric", scale=1.0) for d in range(12)]
    text = " and ".join(f"(x{d} < 0 or x{d + 1} > 1)" for d in range(0, 12, 2))
    assert len(boxes_of(parse(text, fields).asked, fields, [field.column for field in fields])) == 2**6
    fields = [make_field(f"x{d}", "numeric", scale=1.0) for d in range(40)]
    text = " and ".join(f"(x{d} < 0 or x{d + 1} > 1)" for d in range(0, 40, 2))
    with pytest.raises(QuestionError, match=f"more than {MOST_BOXES} disjoint parts"):
        boxes_of(parse(text, fields).asked, fields, [field.column for field in fields])


@pytest.mark.parametrize(
    ("text", "said", "marked"),
    [
        ("", "expected a column, found the end", ""),
        ("agee < 30", "there is no column 'agee': did you mean age?", "agee"),
        ("AGE < 30", "there is no column 'AGE': did you mean age?", "AGE"),
        ("zzz < 30", "the columns are age, income, job, `home town`", "zzz"),
        ("age 30", "expected =, !=, <, <=, >, >=, 'in' or 'between' after age, found '30'", "30"),
        ("age <", "expected a value of age, found the end", ""),
        ("age < 30 income > 5", "expected 'and', 'or', '|' or the end, found 'income'", "income"),
        ("age < 30 and", "expected a column, found the end", ""),
        ("(age < 30", r"expected 'and', 'or' or ')', found the end", ""),
        ("age < 30)", "expected 'and', 'or', '|' or the end, found ')'", ")"),
        ("age < young", "expected a number for age, found 'young'", "young"),
        ("age < income", "income is a column, and columns are compared with values only", "income"),
        ("job = fixd", "did you mean 'fixed'? its values are 'fixed', 'freelance', 'it''s me', 'or'", "fixd"),
        ("job = xyz", "job has no value 'xyz': its values are 'fixed'", "xyz"),
        ("job < 3", "job has no order, only =, != and in: its values are", "<"),
        ("3 < job", "job has no order", "<"),
        ("job between 1 and 2", "job has no order", "between"),
        ("smokes >= true", "smokes has no order", ">="),
        ("children = 3", "children has no value '3': its values are 0, 1, 2, 5", "3"),
        ("job = or", "expected a value of job, found 'or'; as a value, it is written 'or'", "or"),
        ("in = 3", "expected a column, found 'in'; a column of that name is written `in`", "in"),
        ("job in fixed", "expected a list such as {a, b} after 'in'", "fixed"),
        ("job in {fixed, 'or')", "expected ',' or '}', found ')'", ")"),
        ("job in {}", "expected a value of job, found '}'", "}"),
        ("age between 3, 4", "expected 'and' of 'between ... and ...', found ','", ","),
        ("age not < 3", "expected 'in' or 'between' after age", "<"),
        ("age is missing", "age has no probability of being missing", "is missing"),
        ("age is not null", "age has no probability of being missing", "is not null"),
        ("age is 30", "'is' is for 'is missing' only: write = for 'is'", "is"),
        ("job = 'fixed", "this quote is not closed: expected another '", "'"),
        ("age < 3 & age > 1", "'&' is not part of the language: write 'and'", "&"),
        ("age < 3 | job = fixed | age > 1", "there is a second '|'", "|"),
        ("(age < 3 | job = fixed)", "'|' is for the whole question", "|"),
        ("20 < age > 30", "both comparisons should be < or <=", ">"),
        ("20 = age < 30", "both comparisons should be < or <=", "="),
        ("age > 20 < 30", "join two comparisons by 'and', or put age in the middle", "<"),
        ("20 age", "expected a comparison such as < after the value '20', found 'age'", "age"),
        ("age < 1e999", "this number is too large", "1e999"),
        ("age", "after age, found the end", ""),
        ("P(age < 30", "expected 'and', 'or', '|' or ')', found the end", ""),
        ("P(age < 30) and age > 3", "expected the end, found 'and'", "and"),
        ("P < 30", "there is no column 'P'", "P"),
    ],
)
def test_a_parse_error_marks_the_place(text, said, marked) -> None:
    with pytest.raises(QuestionError) as caught:
        parse(text, FIELDS)
    message, shown, mark = str(caught.value).split("\n")
    assert said in message
    assert shown == f"  {text}".rstrip() or shown == f"  {text}"
    begin = mark.index("^") - 2
    assert set(mark.strip()) == {"^"}
    if marked:
        assert text[begin : begin + mark.count("^")] == marked
    else:
        assert begin == len(text)


def test_deep_nesting_is_refused() -> None:
    for opened, closed in (("(", ")"), ("not ", "")):
        depth = MOST_NESTED
        assert parse(opened * depth + "age < 3" + closed * depth, FIELDS)
        with pytest.raises(QuestionError, match="levels of parentheses"):
            parse(opened * 5000 + "age < 3" + closed * 5000, FIELDS)


def test_every_name_and_every_value_can_be_written() -> None:
    for name, value in itertools.product(
        ["a b", "`", 'a"b', "and", "3", "x", "né", "a|b"], ["it's", "|", "", " x ", "3"]
    ):
        if value:
            fields = [make_field(name, "binary", (value, "other"), dtype="text")]
            query = Query(Comparison(name, "=", value))
            assert parse(str(query), fields) == query


@pytest.mark.parametrize(
    ("text", "read", "boxes"),
    [
        ("day = 1970-01-03", "day = '1970-01-03'", [{0: ((1.5 * DAY, 2.5 * DAY),)}]),
        ("day > '1970-01-03T12:00'", "day > '1970-01-03T12:00'", [{0: ((2.5 * DAY, math.inf),)}]),
        ("1970-01-02 <= day < 1970-01-04", "'1970-01-02' <= day < '1970-01-04'", [{0: ((0.5 * DAY, 2.5 * DAY),)}]),
        ("seen < 1970-01-01T00:01", "seen < '1970-01-01T00:01'", [{1: ((-math.inf, 60.0),)}]),
        ("quarter = 1970-04-01", "quarter = '1970-04-01'", [{2: ((0.5, 1.5),)}]),
        ("quarter >= 1970-02-01", "quarter >= '1970-02-01'", [{2: ((0.5, 2.5),)}]),
        ("grade < high", "grade < 'high'", [{3: ((-0.5, 1.5),)}]),
        ("grade between mid and high", "'mid' <= grade <= 'high'", [{3: ((0.5, 2.5),)}]),
        ("grade is missing", "grade is missing", [{3: ((2.5, 3.5),)}]),
        ("grade is not null", "grade is not missing", [{3: ((-0.5, 2.5),)}]),
        ("not grade < high", "not grade < 'high'", [{3: ((1.5, 3.5),)}]),
        ("town = '<other>' or town = Kiel", "town = '<other>' or town = 'Kiel'", [{4: ((0.5, 2.5),)}]),
        ("debt > 5", "debt > 5", [{5: ((math.nextafter(5, 6), MISSING),)}]),
        ("debt <= 5", "debt <= 5", [{5: ((0.0, math.nextafter(5, 6)),)}]),
        ("debt >= 0", "debt >= 0", [{5: ((0.0, MISSING),)}]),
        ("debt is missing or debt > 5", "debt is missing or debt > 5", [{5: ((math.nextafter(5, 6), math.inf),)}]),
        ("children < 2", "children < 2", [{6: ((-0.5, 1.5),)}]),
        ("children > -3", "children > -3", [{}]),
        ("children = -1", "children = -1", []),
    ],
)
def test_regions_of_dates_ordered_categories_point_masses_and_missing(text, read, boxes) -> None:
    query = parse(text, MORE)
    assert str(query) == read
    assert parse(read, MORE) == query
    kinds = [field.column for field in MORE]
    found = boxes_of(query.asked, MORE, kinds)
    assert found == boxes
    contrary = boxes_of(Not(query.asked), MORE, kinds)
    assert boxes_of(Or((query.asked, Not(query.asked))), MORE, kinds) == [{}]
    assert common(found, contrary, kinds) == []


def test_point_masses_are_distinguished_from_single_real_numbers() -> None:
    kinds = [field.column for field in MORE]

    def region(text):
        return boxes_of(parse(text, MORE).asked, MORE, kinds)[0][5]

    assert is_points(region("debt in {1, 2}"), kinds[5])
    assert values_in(region("debt in {1, 2}"), kinds[5], 9) == [1.0, 2.0]
    assert not is_points(region("debt in {0, 2}"), kinds[5])
    assert values_in(region("debt in {0, 2, 7.5}"), kinds[5], 9) == [0.0, 7.5]
    assert values_in(region("debt = 0 or debt is missing"), kinds[5], 9) == [0.0, math.inf]
    assert values_in(region("debt > 5"), kinds[5], 9) is None
    assert values_in(boxes_of(parse("children < 3", MORE).asked, MORE, kinds)[0][6], kinds[6], 9) == [0.0, 1.0, 2.0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("day > 5", "expected a date such as 2024-03-01 for day, found '5'"),
        ("day = 1970-13-01", "expected a date"),
        ("quarter = 1970-04-02", "quarter has no value '1970-04-02': did you mean '1970-04-01'?"),
        ("grade = best", "grade has no value 'best': its values are 'low', 'mid', 'high'"),
        ("town < Kiel", "town has no order"),
        ("town is missing", "town has no probability of being missing"),
    ],
)
def test_values_of_other_kinds_are_refused(text, said) -> None:
    with pytest.raises(QuestionError, match=re.escape(said)):
        parse(text, MORE)
