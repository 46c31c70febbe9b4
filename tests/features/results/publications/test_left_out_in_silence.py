"""Parts that a publication would leave out are named before: subjects without assessments, comments, traits."""

from __future__ import annotations

from uuid import uuid4

import pytest

from tests.features.results.publications.arms import Arms


@pytest.fixture(scope="module", autouse=True)
def made_arms(prepared):
    return prepared(Arms.with_results)


@pytest.fixture
def silent(make, arms):
    """A compulsory subject in which nothing counts: all of both arms take it."""
    return make.cohort_subject(arms.cohort)


def rehearsed(arms, *batches, **fields):
    return arms.api.ok(arms.publish(*batches, query="?dry_run=true", **fields))


def reasons(answer):
    return answer.get_json()["errors"]["json"]


def test_a_dry_run_names_the_subjects_in_which_nothing_counts(api, make, arms, silent):
    untaken = make.cohort_subject(arms.cohort, elective=True)

    first, second = rehearsed(arms)

    named = {"cohort_subject": silent["id"], "subject": silent["subject"], "takers": 2}
    assert [row["without_assessments"] for row in (first, second)] == [{"count": 1, "subjects": [named]}] * 2
    assert untaken["id"] not in str(first)


def test_a_publication_is_refused_until_subjects_without_assessments_are_named(api, arms, silent):
    answer = arms.publish()

    assert answer.status_code == 409
    assert answer.get_json()["type"] == "incomplete"
    assert reasons(answer)["without_assessments"] == [
        {"cohort_subject": silent["id"], "subject": silent["subject"], "takers": 4}
    ]
    assert arms.listed() == []
    published = api.ok(arms.publish(without_subjects=[silent["id"]]))
    assert [publication["state"] for publication in published] == ["PUBLISHED"] * 2
    (entry, *_) = api.ok(api.get("/audit", query_string={"entity": "publication"}))["data"]
    assert entry["new"]["without_subjects"] == [silent["id"]]


def test_the_next_version_need_not_name_them_again(api, arms, silent):
    first, _ = api.ok(arms.publish(without_subjects=[silent["id"]]))
    api.ok(arms.reopen(first))

    (again,) = api.ok(arms.publish(arms.first))

    assert again["version"] == 2
    # Another arm has its own.
    api.ok(arms.reopen(again, withdraw=True))
    assert arms.publish(arms.first).status_code == 200


def test_one_arm_does_not_speak_for_another(api, arms, silent):
    api.ok(arms.publish(arms.first, without_subjects=[silent["id"]]))

    assert arms.publish(arms.second).status_code == 409
    assert arms.publish(arms.second, without_subjects=[silent["id"]]).status_code == 200


def test_a_subject_that_has_an_assessment_since_is_submitted_as_any_other(api, make, arms, silent):
    api.ok(arms.publish(without_subjects=[silent["id"]]))
    paper = make.assessment(silent, arms.terms["FIRST"], category="EXAM")
    for student, batch in arms.everyone:
        make.entry(paper, student, batch)
    for publication in arms.listed():
        api.ok(arms.reopen(publication))

    # It counts now, so that it has to be handed in as any other.
    assert reasons(arms.publish()) == {"subjects": [silent["subject"]]}


def test_a_subject_that_has_something_to_publish_is_not_left_out(api, make, arms, silent):
    untaken = make.cohort_subject(arms.cohort, elective=True)
    elsewhere = make.cohort_subject(make.cohort())
    for query in ("", "?dry_run=true"):
        for other in (arms.subjects[0], untaken, {**elsewhere, "subject": elsewhere["id"]}):
            answer = arms.publish(query=query, without_subjects=[silent["id"], other["id"]])
            assert answer.status_code == 422
            assert reasons(answer)["without_subjects"][0].startswith(f"{other['subject']}: ")
        unknown = str(uuid4())
        answer = arms.publish(query=query, without_subjects=[silent["id"], unknown])
        assert reasons(answer)["without_subjects"][0].startswith(f"{unknown}: ")
    answer = arms.publish(without_subjects=[str(uuid4())] * 101)
    assert (answer.status_code, [*reasons(answer)]) == (422, ["without_subjects"])


def test_a_dry_run_names_students_without_comment(api, arms, silent):
    first, second = arms.students[arms.first]
    comments = [{"student": first, "form_teacher_comment": "Good", "principal_comment": "Well done"}]
    comments.append({"student": second, "form_teacher_comment": "Good"})
    api.ok(api.put("/comments", {"batch": arms.first, "term": "FIRST", "comments": comments}))

    def missing():
        return [publication["comments_missing"]["students"] for publication in rehearsed(arms)]

    assert missing() == [[second], arms.students[arms.second]]
    # By the average one of the principal's is there for everyone.
    chosen = [{"lower_threshold": 0, "comment": "Go on"}]
    api.ok(api.patch("/result-settings", {"principal_comments": chosen}))
    assert missing() == [[], arms.students[arms.second]]


def test_a_dry_run_names_students_without_a_type_of_traits(api, arms, silent):
    first, second = arms.students[arms.first]
    definitions = api.ok(api.get("/metric-definitions"))
    kinds = {definition["metric_type"]: definition["name"] for definition in definitions}
    assert len(kinds) == 2
    scores = [
        {"student": student, "metric_type": kind, "metric_scores": {name: 4}}
        for student, some in ((first, kinds), (second, [*kinds][:1]))
        for kind, name in kinds.items()
        if kind in some
    ]
    api.ok(api.put(f"/metrics?batch={arms.first}&term=FIRST", scores))

    assert [publication["traits_missing"]["students"] for publication in rehearsed(arms)] == [
        [second],
        arms.students[arms.second],
    ]
