"""Bodies and queries: the values understood of them, and the refusals of the rest."""

from __future__ import annotations

import json
from io import BytesIO, RawIOBase

import pytest

NUMBER = "1" * 5000
LONG = "n" * 5000


def values_of(answer):
    assert answer.status_code == 200, answer.get_data(as_text=True)
    return answer.get_json()["taken"]


def refused(answer):
    """The errors of a refused body, by member."""
    assert answer.status_code == 422, answer.get_data(as_text=True)
    (place,) = answer.get_json()["errors"].values()
    return place


TYPES = {400: "malformed", 413: "too-large", 415: "media-type", 422: "validation"}


def assert_error(answer, status, message=None):
    body = answer.get_json()
    assert body["type"] == TYPES[status]
    assert (answer.status_code, body["code"]) == (status, status)
    assert body["request_id"] == answer.headers["X-Request-ID"]
    assert set(body) <= {"code", "status", "type", "message", "errors", "request_id"}
    if message:
        assert body["message"] == message


# Bodies that are no JSON


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"{",
        b'{"text": "a"',
        b'{"text": "a",}',
        b"{'text': 'a'}",
        b'{"text": "a"} {}',
        b'{"text": "\x01"}',
        b"\xff\xfe",
        b"\xef\xbb\xbf{}",
        '{"text": "é"}'.encode("latin-1"),
        '{"text": "a"}'.encode("utf-16"),
        b"text=a",
        b"NULL",
        b"\x00",
        b'{"text": \x00}',
    ],
)
def test_a_body_that_is_no_json_is_400(post, body):
    assert_error(post(body), 400, "The body is not JSON.")


@pytest.mark.parametrize("levels", [33, 100, 10_000, 100_000])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}"), ("[", ""), ('{"a":', "")])
def test_deep_nesting_is_400(post, levels, opening, closing):
    body = opening * levels + ("1" if closing == "}" else "") + closing * levels

    assert_error(post(body), 400, "The body is nested more than 32 levels deep.")


def test_brackets_within_a_text_are_no_nesting(post):
    brackets = '[{"\\' * 25

    assert values_of(post(json.dumps({"text": brackets})))["text"] == repr(brackets)


@pytest.mark.parametrize("body", ["[]", '"text"', "1", "true", "null", "NaN", '[{"text": "a"}]'])
def test_json_that_is_no_object_is_422(post, body):
    assert refused(post(body)) == {"_schema": ["Invalid input type."]}


# Media types


@pytest.mark.parametrize(
    "kind",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "text/json",
        "nonsense",
        "x" * 5000,
    ],
)
def test_another_media_type_is_415(post, kind):
    assert_error(post(b'{"text": "a"}', kind), 415)


def test_a_body_without_a_media_type_is_415(post):
    assert_error(post(b'{"text": "a"}', None), 415)


def test_nothing_at_all_is_400(post):
    assert_error(post(b"", None), 400, "The body is not JSON.")


@pytest.mark.parametrize(
    "kind",
    ["application/json", "application/json; charset=utf-8", "APPLICATION/JSON", "application/problem+json"],
)
def test_json_may_be_named_in_its_several_ways(post, kind):
    assert values_of(post(b'{"text": "a"}', kind)) == {"text": "'a'"}


# Sizes


def test_a_json_body_of_more_than_a_mebibyte_is_413(probing, post):
    probing.config["MAX_CONTENT_LENGTH"], before = 2**22, probing.config["MAX_CONTENT_LENGTH"]
    try:
        most = b'{"long_text": "a"' + b" " * (2**20 - 18) + b"}"
        assert len(most) == 2**20
        assert values_of(post(most)) == {"long_text": "'a'"}
        assert_error(post(most + b" "), 413, "The request is too large.")
    finally:
        probing.config["MAX_CONTENT_LENGTH"] = before


def test_a_body_that_does_not_tell_its_length_is_not_read_without_end(probing):
    class Endless(RawIOBase):
        given = 0

        def readable(self):
            return True

        def readinto(self, room):
            room[:] = b" " * len(room)
            self.given += len(room)
            return len(room)

    endless = Endless()
    streamed = {"wsgi.input": endless, "wsgi.input_terminated": True, "CONTENT_LENGTH": ""}
    answer = probing.test_client().post("/probe", content_type="application/json", environ_overrides=streamed)

    assert_error(answer, 413, "The request is too large.")
    assert endless.given <= 2**21


def upload(probing, size):
    form = {"sheet": (BytesIO(b"a" * size), "scores.xlsx")}
    return probing.test_client().post("/probe/file", data=form, content_type="multipart/form-data")


def test_an_upload_of_just_its_limit_is_taken(probing):
    assert values_of(upload(probing, 100_000)) == {"size": "100000"}


@pytest.mark.parametrize(
    ("size", "message"),
    [(100_001, "The file has 100,001 bytes; 100,000 are allowed."), (200_000, "The request is too large.")],
)
def test_an_upload_of_more_than_its_limit_is_413(probing, size, message):
    assert_error(upload(probing, size), 413, message)


def test_a_form_of_very_many_parts_is_413(probing):
    parts = {f"member{number}": "a" for number in range(30)}

    answer = probing.test_client().post("/probe/file", data=parts, content_type="multipart/form-data")

    assert_error(answer, 413)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"{}", "application/json"),
        (b"sheet=a", "application/x-www-form-urlencoded"),
        (b"a", "application/octet-stream"),
        (b"", None),
    ],
)
def test_an_upload_that_is_no_form_is_415(probing, content, kind):
    assert_error(probing.test_client().post("/probe/file", data=content, content_type=kind), 415)


@pytest.mark.parametrize("kind", ["multipart/form-data", "multipart/form-data; boundary=x"])
@pytest.mark.parametrize(
    "content", [b"", b"nonsense", b"--x\r\n", b"--x\r\nContent-Disposition: form-data\r\n\r\na"]
)
def test_a_broken_form_holds_no_file(probing, kind, content):
    answer = probing.test_client().post("/probe/file", data=content, content_type=kind)

    assert answer.status_code in {400, 422}
    assert_error(answer, answer.status_code)


def test_a_text_in_the_place_of_a_file_is_422(probing):
    answer = probing.test_client().post(
        "/probe/file", data={"sheet": "a"}, content_type="multipart/form-data"
    )

    assert refused(answer) == {"sheet": ["Missing data for required field."]}


# Members


def test_a_member_that_is_no_field_is_422(post):
    assert refused(post('{"text": "a", "txet": "b"}')) == {"txet": ["Unknown field."]}
    assert refused(post('{"inner": {"text": "a", "x": 1}}')) == {"inner": {"x": ["Unknown field."]}}


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("\\ud800", "?"),
        ("a\\udfff", "a?"),
        ("\\u0000", "\0"),
        ("é", "é"),
        ("\\ud83d\\ude00", "😀"),
        ("", ""),
        ("__class__", "__class__"),
    ],
)
def test_an_unknown_member_of_any_name_is_refused_in_sound_json(post, name, shown):
    assert refused(post(f'{{"{name}": 1}}')) == {shown: ["Unknown field."]}


def test_null_is_no_value_of_a_field_that_must_have_one(post):
    assert refused(post('{"text": null}')) == {"text": ["Field may not be null."]}


def test_a_required_member_that_is_missing_is_named(post):
    assert refused(post('{"inner": {}}')) == {"inner": {"text": ["Missing data for required field."]}}


# Texts


def test_a_text_is_trimmed(post):
    assert values_of(post(json.dumps({"text": "\u00a0\n JSS 1\t\u2003"}))) == {"text": "'JSS 1'"}


@pytest.mark.parametrize("text", ["", " ", "\t\n", "\u00a0", "\u2003\u3000"])
def test_a_text_of_spaces_alone_is_422(post, text):
    assert "text" in refused(post(json.dumps({"text": text})))
    assert values_of(post(json.dumps({"optional_text": text}))) == {"optional_text": "''"}


@pytest.mark.parametrize(("field", "most"), [("text", 120), ("long_text", 2000)])
@pytest.mark.parametrize("letter", ["a", "é", "漢", "😀"])
def test_a_text_is_as_long_as_its_letters(post, field, most, letter):
    assert values_of(post(json.dumps({field: letter * most}))) == {field: repr(letter * most)}
    assert values_of(post(json.dumps({field: f" {letter * most} "}))) == {field: repr(letter * most)}
    assert field in refused(post(json.dumps({field: letter * (most + 1)})))


@pytest.mark.parametrize(
    "text", ["\\u0000", "a\\u0000b", "\\ud800", "a\\udc00", "\\udc00\\ud800", "\\u0000 "]
)
@pytest.mark.parametrize(
    "field", ["text", "optional_text", "long_text", "untrimmed", "email", "id", "day", "choice"]
)
def test_nul_and_lone_surrogates_are_422(post, field, text):
    assert field in refused(post(f'{{"{field}": "{text}"}}'))


def test_a_pair_of_surrogates_is_one_letter(post):
    assert values_of(post('{"text": "\\ud83d\\ude00"}')) == {"text": repr("😀")}


@pytest.mark.parametrize("value", ["1", "1.5", "true", "[]", "{}", '["a"]', "NaN"])
@pytest.mark.parametrize("field", ["text", "email", "id", "day", "choice"])
def test_a_value_that_is_no_text_is_422_where_a_text_is_meant(post, field, value):
    assert field in refused(post(f'{{"{field}": {value}}}'))


def test_each_text_of_a_list_is_judged(post):
    assert refused(post('{"texts": ["a", "\\u0000", " "]}')).keys() == {"texts"}
    assert refused(post('{"texts": "a"}')) == {"texts": ["Not a valid list."]}


# Members given more than once


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ('{"text": "a", "text": "b"}', "text"),
        ('{"text": "a", "whole": 1, "text": "a"}', "text"),
        ('{"text": "a", "\\u0074ext": "b"}', "text"),
        ('{"text": "a", "\\u0074\\u0065\\u0078\\u0074": "b"}', "text"),
        ('{"inner": {"text": "a", "text": "b"}}', "text"),
        ('{"inner": {"text": "a"}, "inner": {"text": "b"}}', "inner"),
        ('{"texts": ["a", [[{"é": 1, "\\u00e9": 2}]]]}', "é"),
        ('{"unknown": 1, "unknown": 1}', "unknown"),
        ('{"": 1, "": 1}', ""),
        ('{"\\ud83d\\ude00": 1, "😀": 1}', "😀"),
        ('[{"a": 1, "a": 2}]', "a"),
        ('{"whole": {"a": NaN, "a": 1e9999999999999999999}}', "a"),
        (f'{{"{LONG}": 1, "{LONG}": 2}}', LONG[:60]),
    ],
)
def test_a_member_given_twice_is_422_and_named(post, body, name):
    answer = post(body)

    assert refused(answer) == {name: ["Given more than once."]}
    message = f'The body gives the member "{name}" more than once in one object.'
    assert_error(answer, 422, message)


def test_a_lone_surrogate_given_twice_is_422(post):
    assert_error(post('{"\\ud800": 1, "\\ud800": 2}'), 422)


@pytest.mark.parametrize(
    "body",
    [
        '{"text": "a", "inner": {"text": "a"}}',
        '{"text": "text", "optional_text": "text"}',
        '{"texts": ["a", "a"], "text": "a"}',
    ],
)
def test_the_same_name_in_another_object_is_no_second_member(post, body):
    assert values_of(post(body)).keys() == json.loads(body).keys()


def test_a_broken_body_is_400_though_a_member_is_given_twice_before(post):
    assert_error(post('{"text": "a", "text": "b"'), 400, "The body is not JSON.")


# Identifiers, dates, choices


@pytest.mark.parametrize(
    "value",
    [
        "3fa85f6457174562b3fc2c963f66afa6",
        "{3fa85f64-5717-4562-b3fc-2c963f66afa6}",
        "urn:uuid:3fa85f64-5717-4562-b3fc-2c963f66afa6",
        " 3fa85f64-5717-4562-b3fc-2c963f66afa6",
        "3fa85f64-5717-4562-b3fc-2c963f66afa6\n",
        "3fa85f64-5717-4562-b3fc-2c963f66afa",
        "3fa85f64-5717-4562-b3fc-2c963f66afag",
        "٣fa85f64-5717-4562-b3fc-2c963f66afa6",
        "",
    ],
)
def test_a_uuid_has_one_form(post, probing, value):
    assert refused(post(json.dumps({"id": value}))) == {"id": ["Not a valid UUID."]}
    assert refused(probing.test_client().get("/probe", query_string={"id": value})) == {
        "id": ["Not a valid UUID."]
    }


def test_a_uuid_may_be_in_capitals(post):
    assert "id" in values_of(post('{"id": "3FA85F64-5717-4562-B3FC-2C963F66AFA6"}'))


@pytest.mark.parametrize(
    "value",
    [
        "20260131",
        "2026-W05-6",
        "2026-031",
        "2026-1-31",
        "31-01-2026",
        "2026-01-31T00:00:00Z",
        "2026-01-31 ",
        "2026-02-30",
        "2026-13-01",
        "0000-01-01",
        "\u0662\u0660\u0662\u0666-\u0660\u0661-\u0663\u0661",
        "",
    ],
)
def test_a_date_has_one_form(post, value):
    assert refused(post(json.dumps({"day": value}))) == {"day": ["Not a valid date."]}


def test_a_date_is_taken(post):
    assert values_of(post('{"day": "2024-02-29"}')) == {"day": "datetime.date(2024, 2, 29)"}


@pytest.mark.parametrize("value", ["first", "THIRD", "", " FIRST", "FIRST\n"])
def test_a_choice_is_one_of_its_words(post, value):
    answer = post(json.dumps({"choice": value}))

    if value.strip() == "FIRST":
        assert values_of(answer) == {"choice": "'FIRST'"}
    else:
        assert refused(answer) == {"choice": ["Must be one of: FIRST, SECOND."]}


@pytest.mark.parametrize(
    "value", ["a", "a@", "@b.ng", "a@b", "a b@c.ng", "a@b.ng\\u0000", "a" * 250 + "@b.ng"]
)
def test_an_email_address_has_the_form_of_one(post, value):
    assert "email" in refused(post(f'{{"email": "{value}"}}'))


# Truth and numbers


@pytest.mark.parametrize("value", ["1", "0", '"true"', '"false"', '"on"', "[]", "1.0", '""'])
def test_a_flag_is_true_or_false(post, value):
    assert refused(post(f'{{"flag": {value}}}')) == {"flag": ["Not a valid boolean."]}


def test_flags_are_taken(post, probing):
    assert values_of(post('{"flag": false}')) == {"flag": "False"}
    assert values_of(probing.test_client().get("/probe?flag=true")) == {"flag": "True"}


@pytest.mark.parametrize(
    "value",
    [
        "true",
        "false",
        '"1"',
        "1.5",
        "-1",
        "101",
        "1e3",
        "1e400",
        "-1e400",
        "1e-400",
        "1e999999999",
        "1e9999999999999999999",
        "NaN",
        "Infinity",
        "-Infinity",
        NUMBER,
        f"-{NUMBER}",
        f"0.{NUMBER}",
        "[1]",
        "{}",
    ],
)
@pytest.mark.parametrize("field", ["whole", "any_whole"])
def test_a_value_that_is_no_whole_number_within_its_bounds_is_422(post, field, value):
    if field == "any_whole" and value in {"-1", "101", "1e3"}:
        assert field in values_of(post(f'{{"{field}": {value}}}'))
    else:
        assert field in refused(post(f'{{"{field}": {value}}}'))


@pytest.mark.parametrize(("value", "number"), [("0", 0), ("100", 100), ("5.0", 5), ("1e1", 10), ("-0", 0)])
def test_a_whole_number_is_one_however_json_writes_it(post, value, number):
    assert values_of(post(f'{{"whole": {value}}}')) == {"whole": repr(number)}


@pytest.mark.parametrize("value", ["2147483648", "-2147483649", "9223372036854775808"])
def test_a_whole_number_fits_into_32_bits(post, value):
    assert "any_whole" in refused(post(f'{{"any_whole": {value}}}'))


@pytest.mark.parametrize(
    "value",
    [
        "true",
        '"1"',
        "-0.01",
        "1.005",
        "0.001",
        "100000",
        "1e400",
        "1e-400",
        "1e9999999999999999999",
        "1e-9999999999999999999",
        "NaN",
        "Infinity",
        "-Infinity",
        NUMBER,
        f"0.{NUMBER}",
        "[1]",
    ],
)
def test_a_value_that_is_no_number_of_points_is_422(post, value):
    assert "points" in refused(post(f'{{"points": {value}}}'))


@pytest.mark.parametrize("value", ["0", "0.1", "69.5", "99999.99", "1.50000", "1e2", "12.30e0"])
def test_points_keep_every_digit(post, value):
    assert values_of(post(f'{{"points": {value}}}'))["points"].startswith("Decimal(")


# Queries


@pytest.mark.parametrize(
    "value",
    ["", " ", "a", "1.0", "1e1", "0x1", "+1", "1 ", "-1", "101", "٣", "1_0", "true", "NaN", "1" * 5000],
)
def test_a_text_that_is_no_whole_number_in_a_query_is_422(probing, value):
    answer = probing.test_client().get("/probe", query_string={"whole": value})

    assert list(refused(answer)) == ["whole"]
    assert list(answer.get_json()["errors"]) == ["query"]


@pytest.mark.parametrize("query", ["text=%00", "text=a%00b", "text=%20", "text=", f"text={'a' * 121}"])
def test_a_text_in_a_query_is_judged_as_in_a_body(probing, query):
    assert list(refused(probing.test_client().get(f"/probe?{query}"))) == ["text"]


@pytest.mark.parametrize(
    "query", ["text=%ff", "text=%ed%a0%80", "text=%", "%=%", "&&&", "text", "=a", "unknown=1"]
)
def test_a_strange_query_is_no_failure(probing, query):
    assert probing.test_client().get(f"/probe?{query}").status_code in {200, 422}


def test_a_parameter_given_twice_counts_once(probing):
    assert values_of(probing.test_client().get("/probe?whole=1&whole=2")) == {"whole": "1"}


@pytest.mark.parametrize("value", ["yes", "on", "2", "TRUE ", "null", ""])
def test_a_flag_in_a_query_is_true_or_false(probing, value):
    assert list(refused(probing.test_client().get("/probe", query_string={"flag": value}))) == ["flag"]


# The same at an endpoint of the service


@pytest.mark.parametrize(
    "name",
    ["", " ", "a\0", "\ud800", "a" * 121, 1, True, None, ["a"], {"a": 1}, 1.5],
    ids=lambda name: repr(name)[:20],
)
def test_a_classrooms_name_is_a_text(api, name):
    answer = api.post("/classrooms", {"name": name, "level": "Junior"})

    assert list(refused(answer)) == ["name"]


def test_a_classroom_named_twice_is_not_made(api):
    before = api.ok(api.get("/classrooms"))
    body = '{"name": "JSS 1", "level": "Junior", "name": "JSS 2"}'

    answer = api.request("POST", "/classrooms", data=body, content_type="application/json")

    assert refused(answer) == {"name": ["Given more than once."]}
    assert api.ok(api.get("/classrooms")) == before


def test_a_text_is_stored_as_it_was_meant(api, make):
    name = "JSS 1 Ọ̀ṣun — 漢字 😀 %_\\'\"; DROP TABLE classrooms; --"

    assert api.ok(api.get(f"/classrooms/{make.classroom(name=name)['id']}"))["name"] == name
