"""Differences of a golden file, and the words in which they are told."""

from __future__ import annotations

import pytest

from tests.features.results.golden.comparing import ACT, ANSWER, DOCUMENT, PAPER, Reading, differences


def compared(before: str, now: str, kind: str = ANSWER) -> list[str]:
    return differences([Reading("it", kind, "200", before)], [Reading("it", kind, "200", now)])


@pytest.mark.parametrize("kind", [ACT, ANSWER])
@pytest.mark.parametrize(
    ("before", "now"),
    [
        ('{"average": 76.50}', '{"average": 76.5}'),
        ('{"average": 76.0}', '{"average": 76}'),
        ('{"average": 76}', '{"average": "76"}'),
        ('{"average": null}', '{"average": false}'),
        ('{"average": 1, "of": 2}', '{"of": 2, "average": 1}'),
        ('[{"id": 1}, {"id": 2}]', '[{"id": 2}, {"id": 1}]'),
        ('{"subjects": []}', '{"subjects": {}}'),
        ('{"results": {"a": {"percent": 1, "grade": 2}}}', '{"results": {"a": {"grade": 2, "percent": 1}}}'),
        ('{"results": [1, 2]}', '{"results": [2, 1]}'),
        ('{"name": "Ada"}', '{"name": "Ada "}'),
    ],
)
def test_an_answer_has_its_numbers_as_written_and_its_order(kind, before, now):
    assert len(compared(before, now, kind)) == 1


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ('{"average": 76.50, "of": [1, 2]}', '{ "average":76.50,\n"of":[1,2]}'),
        ('{"name": "\\u00c0da"}', '{"name": "Àda"}'),
        ('{"results": {"a": {"percent": 1}, "b": {}}}', '{"results": {"b": {}, "a": {"percent": 1}}}'),
    ],
)
def test_white_space_and_the_order_of_a_broadsheets_subjects_do_not_count(before, now):
    assert compared(before, now) == []


@pytest.mark.parametrize(
    "now", ['{"a": 1,"b": 2}', '{"b": 2, "a": 1}', '{"a": 1, "b": 2.0}', '{"a": 1, "b": 2} ']
)
def test_a_stored_document_is_the_same_byte_for_byte(now):
    before = '{"a": 1, "b": 2}'

    assert compared(before, before, DOCUMENT) == []
    assert len(compared(before, now, DOCUMENT)) == 1


def test_the_words_of_a_paper_count():
    assert compared("Total 188\nAverage 37.60", "Total  188 Average 37.60", PAPER) == []
    assert len(compared("Average 37.60", "Average 37.6", PAPER)) == 1


def test_a_difference_is_told_with_the_tokens_around_it():
    (told,) = compared(
        '{"total": 188, "average": 37.60, "grade": "F9"}', '{"total": 188, "average": 37.6, "grade": "F9"}'
    )

    assert told.splitlines() == [
        "it: token 6 is 37.6, and was 37.60",
        '  was  answer 200 { "total" 188 "average" >>> 37.60 <<< "grade" "F9" }',
        '  is   answer 200 { "total" 188 "average" >>> 37.6 <<< "grade" "F9" }',
    ]


def test_the_status_and_the_name_of_a_file_count():
    before, now = (Reading("it", PAPER, f'200 inline; filename="{name}.pdf"', "Ada") for name in ("a", "b"))

    (told,) = differences([before], [now])

    assert 'filename="b.pdf"' in told


def test_readings_gone_new_or_in_another_order_are_named():
    reading, other = (Reading(name, ANSWER, "200", "[]") for name in ("one", "other"))

    assert differences([reading], [other]) == ["one: is read no more", "other: was not read before"]
    assert differences([reading, other], [other, reading]) == ["The readings are in another order."]
