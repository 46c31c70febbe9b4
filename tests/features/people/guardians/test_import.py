"""Guardians who come with a sheet of students."""

from __future__ import annotations

from tests.features.classes.student_imports.test_import import LEAST, listed, row_errors, upload
from tests.features.people.guardians.test_accounts import WRITING, with_account
from tests.features.people.guardians.test_guardians import links, stop_of
from tests.sheets.workbooks import workbook
from tests.threads import run_concurrently

FIRST = ["guardian_full_name", "guardian_phone_number", "guardian_relationship"]
SECOND = [
    "guardian_2_full_name",
    "guardian_2_relationship",
    "guardian_2_phone_number",
    "guardian_2_email_address",
]


def sheet(*rows):
    """A sheet of students, each of a name and these cells of guardians."""
    students = [[f"Ada{number}", "Obi", f"IM/{number:05}", *row] for number, row in enumerate(rows, 1)]
    return workbook([[*LEAST, *FIRST, *SECOND], *students])


def counts(api, content, query=""):
    answer = api.ok(upload(api, content, query))
    return answer["guardians_created"], answer["guardians_found"]


def family_of(api, student):
    return [(link["full_name"], link["relationship"], link["primary"]) for link in links(api, student)]


def test_brothers_and_sisters_share_guardians_of_the_sheet_and_of_the_school(api, make):
    make.guardian(full_name="Emeka Òbí", email_address="emeka@example.com")
    second = ["Emeka Obi", "father", None, "EMEKA@example.com"]
    content = sheet(
        ["Ngọzi Òbí", "0803 1", "mother", *second],
        ["NGOZI OBI", "(0803)-1", "mother", *second],
        ["Halima", "0805", "aunt", None, None, None, None],
    )

    assert counts(api, content, "?dry_run=true") == (2, 1)
    assert api.ok(api.get("/guardians"))["total"] == 1
    assert counts(api, content) == (2, 1)

    assert [guardian["full_name"] for guardian in api.ok(api.get("/guardians"))["data"]] == [
        "Emeka Òbí",
        "Halima",
        "Ngọzi Òbí",
    ]
    first_child, second_child, third_child = listed(api)
    assert (
        family_of(api, first_child)
        == family_of(api, second_child)
        == [
            ("Ngọzi Òbí", "mother", True),
            ("Emeka Òbí", "father", False),
        ]
    )
    assert family_of(api, third_child) == [("Halima", "aunt", True)]
    assert first_child["guardian"]["full_name"] == "Ngọzi Òbí"


def test_the_same_person_twice_in_a_row_is_one_guardian(api):
    assert counts(api, sheet(["Ngozi", "1", "mother", "ngozi", "mother", "1", None])) == (1, 0)

    (student,) = listed(api)
    assert family_of(api, student) == [("Ngozi", "mother", True)]


def test_a_second_guardian_may_be_alone_and_needs_a_name(api):
    content = sheet(
        [None, None, None, "Emeka", "uncle", None, None],
        [None, None, None, None, "uncle", None, None],
        [None, None, None, "Emeka", None, None, "no address"],
    )
    assert row_errors(upload(api, content)) == [
        (3, "guardian_2_full_name", "required"),
        (4, "guardian_2_email_address", "invalid"),
    ]

    assert counts(api, sheet([None, None, None, "Emeka", "uncle", None, None])) == (1, 0)

    (student,) = listed(api)
    assert (student["guardian"], family_of(api, student)) == (None, [("Emeka", "uncle", False)])


def test_a_sheet_without_guardians_says_nothing_of_them(api):
    answer = api.ok(upload(api, workbook([LEAST, ["Ada", "Obi", "QC/1"]])))

    assert not {"guardians_created", "guardians_found"} & answer.keys()


def test_an_import_gives_no_account_a_child_without_the_right_to_read_results(api, make):
    with_account(api, make, full_name="Emeka", phone_number="0803")
    content = sheet(["Emeka", "0803", "father", None, None, None, None])

    for query in ("", "?dry_run=true"):
        answer = upload(make.caller(*WRITING), content, query)
        assert (answer.status_code, "read:results" in answer.get_json()["message"]) == (403, True)
    assert listed(api) == []
    assert counts(make.caller(*WRITING, "read:results"), content) == (0, 1)


def test_a_stop_of_one_child_stays_when_another_is_imported(api, make):
    student = make.student()
    guardian = make.guardian(student, full_name="Emeka", phone_number="0803")
    api.ok(api.put(stop_of(student, guardian), {"reason": "x"}))

    assert counts(api, sheet(["Emeka", "0803", "father", None, None, None, None])) == (0, 1)

    children = api.ok(api.get(f"/guardians/{guardian['id']}"))["children"]
    assert sorted(bool(child["stopped_at"]) for child in children) == [False, True]
    assert links(api, student)[0]["stopped_at"] is not None


def test_twenty_one_children_are_too_many(api):
    content = sheet(*[["Emeka", "0803", "father", None, None, None, None]] * 21)

    assert upload(api, content).status_code == 409
    assert listed(api) == []


def test_four_imports_at_once_make_one_guardian(committing):
    api = committing.api

    def work(number):
        rows = [
            [
                f"Ada{row}",
                "Obi",
                f"RACE/{number}/{row}",
                "Ngọzi",
                "0803",
                "mother",
                f"Aunt {row}",
                None,
                f"{row}",
                None,
            ]
            for row in range(4)
        ]
        if number % 2:
            rows.reverse()
        return upload(api.using(), workbook([[*LEAST, *FIRST, *SECOND], *rows]))

    answers = run_concurrently(4, work)

    statuses = {answer.status_code for answer in answers}
    assert statuses <= {200, 409}
    assert 200 in statuses
    assert api.ok(api.get("/guardians?search=Ngozi"))["total"] == 1
    assert api.ok(api.get("/guardians?search=Aunt"))["total"] == 4


def test_the_number_of_round_trips_depends_on_no_number_of_rows(api, messages):
    counted = []
    for size in (2, 40):
        rows = [
            [
                f"Ada{row}",
                "Obi",
                f"{size}/{row}",
                f"Ngozi {size} {row}",
                "1",
                "m",
                f"Emeka {size} {row}",
                "f",
                "2",
                None,
            ]
            for row in range(size)
        ]
        content = workbook([[*LEAST, *FIRST, *SECOND], *rows])
        with messages() as sent:
            api.ok(upload(api, content))
        counted.append(len(sent))

    assert counted[0] == counted[1] <= 11, counted
