"""A mark sheet, or a list of marks, that is older than the stored marks."""

from __future__ import annotations

from tests.features.scores.marksheets.arms import MARKS, Marked, counts, fill, refused
from tests.prepared import prepared_for_each
from tests.threads import run_concurrently

original, arm = prepared_for_each(Marked)


def message(answer):
    (error,) = answer.get_json()["errors"]["rows"]
    return error["message"]


def test_a_score_changed_since_the_download_is_named_and_not_replaced(arm):
    workbook = fill(arm.download(), {"A/1": {"CA1 (20)": 15}, "A/3": {"CA1 (20)": 1}})
    arm.api.ok(arm.put(arm.record("A/1", 0, score=14)))

    answer = arm.send(workbook)

    assert refused(answer, 409) == [(2, "CA1 (20)", "changed")]
    assert message(answer).startswith('D2: "15" would replace 14, which School Administrator entered on 20')
    assert message(answer).endswith("download the sheet again, or send this one with force=true")
    assert arm.marks() == {**MARKS, "A/1": [14, None, None]}


def test_the_same_mark_entered_by_another_is_no_reason(arm):
    workbook = fill(arm.download(), {"A/1": {"CA1 (20)": 15}, "A/3": {"CA1 (20)": "EXCUSED"}})
    arm.api.ok(arm.put(arm.record("A/1", 0, score=15), arm.record("A/3", 0, absence="EXCUSED")))

    assert counts(arm.send(workbook)) == (4, 0, 0, 3, 1)


def test_a_mark_entered_since_in_a_cell_that_was_blank_is_not_replaced(arm):
    workbook = fill(arm.download(), {"A/3": {"CA1 (20)": 15}, "A/4": {"EX (60)": 30}})
    arm.api.ok(arm.put(arm.record("A/3", 0, score=14), arm.record("A/4", 2, absence="ABSENT")))

    answer = arm.send(workbook)

    assert refused(answer, 409) == [(4, "CA1 (20)", "changed"), (5, "EX (60)", "changed")]
    said = answer.get_json()["errors"]["rows"][1]["message"]
    assert said.startswith('F5: "30" would replace ABSENT, which School Administrator entered on 20')


def test_a_mark_removed_since_does_not_come_back(arm):
    workbook = fill(arm.download(), {"A/1": {"CA1 (20)": 15}})
    arm.api.ok(arm.api.delete(f"/gradebooks/{arm.entry['id']}"))

    answer = arm.send(workbook)

    assert refused(answer, 409) == [(2, "CA1 (20)", "changed")]
    assert "would bring back a score that School Administrator removed" in message(answer)


def test_an_emptied_cell_of_a_mark_changed_since_is_not_taken_away(arm):
    workbook = fill(arm.download(), {"A/1": {"CA1 (20)": None}})
    arm.api.ok(arm.put(arm.record("A/1", 0, score=14)))

    answer = arm.send(workbook)

    assert refused(answer, 409) == [(2, "CA1 (20)", "changed")]
    assert message(answer).startswith('D2: "nothing" would replace 14')


def test_force_replaces_a_changed_mark_and_the_log_says_so(arm):
    workbook = fill(arm.download(), {"A/1": {"CA1 (20)": 15, "CA2 (20)": 3}})
    arm.api.ok(arm.put(arm.record("A/1", 0, score=14)))

    assert counts(arm.send(workbook, force="true")) == (4, 0, 1, 1, 2)
    forced = [new.get("forced") for _, _, new in arm.logged("gradebook")[:2]]
    assert sorted(forced, key=str) == [None, True]
    assert arm.marks()["A/1"] == [15, 3, None]


def test_the_same_file_corrected_and_sent_again_replaces_its_own_marks(arm):
    workbook = fill(arm.download(), {"A/3": {"CA1 (20)": 15, "CA2 (20)": "ABSENT"}})
    arm.api.ok(arm.send(workbook))

    again = fill(workbook, {"A/3": {"CA1 (20)": 16, "CA2 (20)": 9}})

    assert counts(arm.send(again)) == (4, 0, 1, 2, 1)
    assert arm.marks()["A/3"] == [16, 9, None]


def test_without_the_marks_of_the_download_its_moment_decides(arm):
    workbook = fill(arm.download(), {"A/1": {"CA1 (20)": 15}, "A/2": {"CA1 (20)": 2}})
    del workbook["Held"]
    arm.api.ok(arm.put(arm.record("A/2", 0, absence="EXCUSED")))

    assert refused(arm.send(workbook), 409) == [(3, "CA1 (20)", "changed")]
    assert counts(arm.send(workbook, force="true")) == (4, 0, 2, 0, 2)


def test_two_uploads_at_once_end_as_one_after_the_other(committing):
    arm = Marked(committing)
    first = fill(arm.download(), {"A/3": {"CA1 (20)": 1, "EX (60)": 1}})
    second = fill(arm.download(), {"A/3": {"CA1 (20)": 2, "EX (60)": 2}})

    answers = run_concurrently(2, lambda number: arm.send((first, second)[number]))

    # One of the two came first: the other is by the same person, of another download.
    assert sorted(answer.status_code for answer in answers) == [200, 409]
    assert arm.marks()["A/3"] in ([1, None, 1], [2, None, 2])


def test_a_sheet_and_a_list_with_the_same_expectation_are_one_conflict(committing):
    arm = Marked(committing)
    workbook = fill(arm.download(), {"A/1": {"CA1 (20)": 1}})

    def work(number):
        if number:
            return arm.put(arm.record("A/1", 0, score=2, expected=12.5))
        return arm.send(workbook)

    answers = run_concurrently(2, work)

    assert sorted(answer.status_code for answer in answers) == [200, 409]
