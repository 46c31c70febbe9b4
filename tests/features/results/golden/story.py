"""How two sessions of the golden school go, and when it is read."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from typing import Any, NamedTuple

from school_service.core.permissions import Permission
from tests.factories import PASSWORD
from tests.features.results.golden.school import (
    JUNIOR,
    JUNIOR_SUBJECTS,
    LOGO,
    SENIOR,
    SENIOR_SUBJECTS,
    SIGNATURE,
    TERMS,
    GoldenSchool,
    SchoolClass,
)

EARLIER, SESSION, NEXT = "2024/2025", "2025/2026", "2026/2027"
READS = tuple(permission for permission in Permission if permission.access == "read")

FIRST_SETTINGS: dict[str, Any] = {
    "pass_mark": 45,
    "minimum_subjects": 3,
    "show_teachers": True,
    "percent_from": "EXACT",
    "name_order": "SURNAME_FIRST",
    "principal_comments": [
        {"lower_threshold": 70, "comment": "An excellent result."},
        {"lower_threshold": 50, "comment": "A fair result."},
        {"lower_threshold": 0, "comment": "See me."},
    ],
}
SECOND_SETTINGS: dict[str, Any] = {
    "weighting": "CATEGORIES",
    "weights": [
        *({"level": None, "category": name, "weight": weight}
          for name, weight in (("CA1", 10), ("CA2", 12.5), ("CA3", 17.5), ("EXAM", 60))),
        *({"level": SENIOR, "category": name, "weight": weight} for name, weight in (("CA1", 20), ("EXAM", 80))),
    ],
    "percent_places": 1,
    "positions": "BATCH",
    "rank_by": "TOTAL",
    "minimum_terms": 2,
    "term_weights": {"FIRST": 15, "SECOND": 25, "THIRD": 60},
    "signatures": "LINES",
}  # fmt: skip
THIRD_SETTINGS: dict[str, Any] = {
    "weights": [
        {"level": None, "category": "CA2", "weight": 30},
        {"level": None, "category": "EXAM", "weight": 70},
    ],
    "percent_places": 0,
    "positions": "COHORT",
    "rank_by": "AVERAGE",
    "minimum_subjects": 5,
    "name_order": "GIVEN_FIRST",
    "principal_comments": [],
    "term_weights": {"FIRST": 0, "SECOND": 0, "THIRD": 1},
}


class Moment(NamedTuple):
    """A moment at which the school is read: classes in terms and, where it is set, the `whole` school.

    Two teachers of reach OWN, a guardian and a student read these classes where `own` is set.
    """

    name: str
    read: tuple[tuple[SchoolClass, str], ...]
    whole: bool = False
    own: bool = False


def story(school: GoldenSchool) -> Iterator[Moment]:
    """Let two sessions of the school go by."""
    _begin(school)
    yield from _earlier_session(school)
    _begin_session(school)
    yield from _first_term(school)
    yield from _second_term(school)
    yield from _third_term(school)
    yield from _promotion(school)
    yield from _late_comers(school)


def _begin(school: GoldenSchool) -> None:
    school.session(EARLIER, "2024-09-09", "2025-07-18", "FIRST", "THIRD")
    school.session(SESSION, "2025-09-08", "2026-07-24", *TERMS)
    school.session(NEXT, "2026-09-07", "2027-07-23", "FIRST")
    for name, level in (("JSS 1", JUNIOR), ("JSS 2", JUNIOR), ("JSS 3", JUNIOR), ("SSS 1", SENIOR), ("SSS 2", SENIOR),
                        ("SSS 3", SENIOR)):  # fmt: skip
        school.rooms[name] = school.make.classroom(name=name, level=level)
    for name in sorted({*JUNIOR_SUBJECTS, *SENIOR_SUBJECTS}):
        made = school.make.subject(name=name, code=name[:3].upper() + str(len(name)))
        school.bases[name] = school.label(made, name)


def _earlier_session(school: GoldenSchool) -> Iterator[Moment]:
    """A class of one arm in two terms, by the settings that hold without any; then it is promoted."""
    sss1 = school.class_("SSS 1", EARLIER, ("A",), SENIOR_SUBJECTS[:5])
    school.admit(sss1, "A", 8)
    school.choose(sss1)
    for term, day in (("FIRST", "2024-12-02"), ("THIRD", "2025-07-01")):
        school.clock.go_to(day)
        school.papers(sss1, term)
        school.mark(sss1, term)
        school.submit(sss1, term)
        school.publish(sss1, term)
    again = school.class_("SSS 1", SESSION, ("A",))
    above = school.class_("SSS 2", SESSION, ("Gold", "Silver"), SENIOR_SUBJECTS)
    move = {"batch": sss1.arms["A"], "promote_to": above.arms["Gold"], "repeat_in": again.arms["A"]}
    someone, other = sss1.everyone[1:3]
    overrides = [
        {
            "student": someone,
            "batch": above.arms["Silver"],
            "outcome": "PROMOTED",
            "reason": "Chose the arts",
        },
        {"student": other, "outcome": "REPEATED", "reason": "Was ill for most of the session"},
    ]
    _promote(school, EARLIER, [move], overrides)
    yield Moment("an earlier session", ((sss1, "FIRST"), (sss1, "THIRD")), whole=True)


def _promote(
    school: GoldenSchool, session: str, moves: list[dict[str, Any]], overrides: list[dict[str, Any]]
) -> dict[str, Any]:
    """Rehearse a promotion, promote, and note the new classes of students."""
    body = {"session": session, "moves": moves, "overrides": overrides}
    dry = school.send("POST", "/promotions?dry_run=true", body, about=session)
    made: dict[str, Any] = school.send(
        "POST", "/promotions", {**body, "fingerprint": dry["fingerprint"]}, about=session
    )
    school.label(made, f"promotion of {session}")
    for decision in made["decisions"]:
        _note(school, decision)
    return made


def _note(school: GoldenSchool, decision: dict[str, Any]) -> None:
    for of in school.classes.values():
        for arm, batch in of.arms.items():
            if batch == decision["to_batch"]:
                of.enter(decision["student"]["id"], arm)


def _begin_session(school: GoldenSchool) -> None:
    """Set up the classes of the session, their teachers, and the letterhead."""
    school.clock.go_to("2025-09-09")
    school.send("PATCH", f"/sessions/{school.sessions[SESSION]['id']}", {"current": True})
    school.send("PATCH", "/result-settings", FIRST_SETTINGS)
    letterhead = {
        "address": "3 Ahmadu Bello Way, Kaduna", "website": "https://golden.example", "motto": "Ìmọ̀ ni agbára",
        "principal_name": "Dr Ọláyínká Ṣówándé", "principal_title": "Principal",
    }  # fmt: skip
    school.send("PATCH", "/letterhead", letterhead)
    jss1 = school.class_("JSS 1", SESSION, ("A", "B"), JUNIOR_SUBJECTS)
    jss2 = school.class_("JSS 2", SESSION, ("Blue", "Green", "Red"), JUNIOR_SUBJECTS[:5])
    sss3 = school.class_("SSS 3", SESSION, ("A",), SENIOR_SUBJECTS[2:])
    sss3.plain = True
    sss2 = school.classes["SSS 2", SESSION]
    school.admit(jss1, "A", 9)
    school.admit(jss1, "B", 7)
    school.ability[jss1.students["A"][-1]] = 0.1
    for arm in jss2.arms:
        school.admit(jss2, arm, 5)
    school.admit(sss3, "A", 6)
    school.admit(sss2, "Gold", 3)
    school.admit(sss2, "Silver", 5)
    for of in (jss1, jss2, sss2, sss3):
        school.choose(of)
    _appoint(school, jss1, sss2)


def _appoint(school: GoldenSchool, jss1: SchoolClass, sss2: SchoolClass) -> None:
    """Appoint form and subject teachers; they, a guardian and a student sign in, all of them with reach OWN."""
    make = school.make
    people = (("Adaeze", "Nwachukwu"), ("Bákárè", "Oyèníyì"), ("Grace", "Effiong"))
    form, subject, both = (make.employee(first_name=first, last_name=last) for first, last in people)
    for employee, of, arm in ((form, jss1, "A"), (both, jss1, "B"), (both, sss2, "Gold")):
        school.send("PATCH", f"/teachers/{of.arms[arm]}/add_to_batch", {"teacher_id": employee["id"]})
    assigned = (
        (subject, jss1, "Mathematics", "B"),
        (both, jss1, "Mathematics", "A"),
        (subject, sss2, "English Language", None),
        (form, sss2, "English Language", "Gold"),
        (form, jss1, "Yoruba", None),
    )
    rows = [
        {"employee": employee["id"], "cohort_subject": of.subjects[name], "batch": arm and of.arms[arm]}
        for employee, of, name, arm in assigned
    ]
    school.send("PUT", "/subject-teachers", {"assignments": rows})
    role = make.role(*READS, name="Reads their own", reach="OWN")["id"]
    child, other = jss1.students["A"][2], sss2.students["Gold"][0]
    guardian = make.guardian(
        full_name="Ngọzi Bàlógun",
        students=[{"student": student, "relationship": "mother"} for student in (child, other)],
    )
    account = {"username": "ngozi.balogun", "password": PASSWORD}
    guardian_user = school.send("PUT", f"/guardians/{guardian['id']}/account", account)["user"]
    users = {
        "form teacher": make.account_of(form)["id"],
        "subject teacher": make.account_of(subject)["id"],
        "guardian": guardian_user,
        "student": school.send("GET", f"/students/{child}")["user"],
    }
    for name, user in users.items():
        if name.endswith("teacher"):
            school.send("PUT", f"/users/{user}/roles", {"role": role})
        school.send("PUT", f"/users/{user}/password", {"password": PASSWORD})
        school.callers[name] = make.signed_in(school.send("GET", f"/users/{user}"))


def _calendar(school: GoldenSchool, term: str, start: str, end: str, **fields: Any) -> None:
    body = {"start_date": start, "end_date": end, "times_opened": 112, **fields}
    school.send("PUT", f"/terms/{school.terms[SESSION, term]['id']}/calendar", body)


def _first_term(school: GoldenSchool) -> Iterator[Moment]:
    jss1, jss2, sss2, sss3 = (school.classes[name, SESSION] for name in ("JSS 1", "JSS 2", "SSS 2", "SSS 3"))
    notice = "School fees are due by 16 January.\nBring two novels."
    _calendar(school, "FIRST", "2025-09-15", "2025-12-19", next_term_begins="2026-01-12", notice=notice)
    school.clock.go_to("2025-12-01")
    for of in (jss1, jss2, sss2, sss3):
        school.papers(of, "FIRST")
    school.mark(jss1, "FIRST", blanks=0.03)
    school.send("DELETE", f"/assessments/{jss1.papers['French', 'FIRST'].pop(0)['id']}")
    school.say(jss1, "FIRST")
    yield Moment("while it is marked", ((jss1, "FIRST"),))
    yield from _first_publications(school, jss1)
    for of in (jss2, sss2, sss3):
        school.mark(of, "FIRST")
        school.say(of, "FIRST")
        school.submit(of, "FIRST")
    school.publish(jss2, "FIRST")
    school.publish(sss2, "FIRST")
    # A class without subjects has cards, too.
    school.publish(school.classes["SSS 1", SESSION], "FIRST")
    yield from _first_corrections(school, jss1)


def _first_publications(school: GoldenSchool, jss1: SchoolClass) -> Iterator[Moment]:
    """Hand in with blanks, and publish an arm; a late comer enters after it."""
    school.publish(jss1, "FIRST", "A", status=409)
    school.submit(jss1, "FIRST", *jss1.subjects)
    school.submit(jss1, "FIRST", "Mathematics", batch=jss1.arms["A"], blanks="EXCUSED")
    school.publish(jss1, "FIRST", "A", status=409)
    school.submit(jss1, "FIRST", *jss1.subjects, blanks="ABSENT")
    school.publish(jss1, "FIRST", "A")
    school.admit(jss1, "A", 1)
    yield Moment("with one arm published", ((jss1, "FIRST"),), own=True)
    school.publish(jss1, "FIRST", "A", status=409)
    school.publish(jss1, "FIRST", "B")


def _first_corrections(school: GoldenSchool, jss1: SchoolClass) -> Iterator[Moment]:
    """Correct publications: a student moves, one withdraws, one is left out; an arm is withdrawn and comes back."""
    mover, leaver, out, corrected, *_ = jss1.students["A"]
    school.enroll(jss1, "B", [mover])
    school.send("PATCH", f"/students/{leaver}", {"status": "WITHDRAWN"})
    for arm in jss1.arms:
        school.reopen(jss1, arm, "FIRST")
    school.correct(jss1, "FIRST", "Mathematics", corrected, 0.97)
    yield Moment("under review", ((jss1, "FIRST"),))
    school.reopen(jss1, "B", "FIRST", withdraw=True)
    yield Moment("with one arm withdrawn", ((jss1, "FIRST"),), own=True)
    school.send("PATCH", "/result-settings", {"positions": "NONE"})
    school.publish(jss1, "FIRST", "A", leave_out=[{"student": out, "reason": "Sat for nothing"}])
    school.publish(jss1, "FIRST", "B", "A", status=409)
    school.send("PATCH", "/result-settings", {"positions": "BOTH"})
    school.publish(jss1, "FIRST", "B")
    school.reopen(jss1, "A", "FIRST")
    school.publish(jss1, "FIRST", "A", take_in=[out])
    school.send("PATCH", f"/students/{leaver}", {"status": "ACTIVE"})
    yield Moment("corrected", ((jss1, "FIRST"),), whole=True, own=True)


def _second_term(school: GoldenSchool) -> Iterator[Moment]:
    """By categories, with results of other schools; an elective is dropped, another taken up."""
    jss1, jss2, sss2, sss3 = (school.classes[name, SESSION] for name in ("JSS 1", "JSS 2", "SSS 2", "SSS 3"))
    school.clock.go_to("2026-01-12")
    school.send("PATCH", "/result-settings", SECOND_SETTINGS)
    _put_pictures(school)
    _calendar(school, "SECOND", "2026-01-12", "2026-04-02", times_opened=None)
    school.drop(jss1, "Music", jss1.takers["Music"][0])
    school.drop(jss1, "French", jss1.takers["French"][-1])
    without = [student for student in jss1.students["B"] if student not in jss1.takers["Music"]]
    school.take(jss1, "Music", without[:2])
    school.excused |= {*school.admit(jss1, "B", 1)}
    school.admit(jss1, "A", 1)
    school.enroll(sss2, "Silver", sss2.students["Gold"][-1:])
    school.clock.go_to("2026-03-20")
    for of in (jss1, jss2, sss2, sss3):
        school.papers(of, "SECOND", "FIRST_TERM")
        school.mark(of, "SECOND")
        school.say(of, "SECOND")
        school.submit(of, "SECOND")
    # The first term of the last class is published late, and has to come before the second.
    school.publish(sss3, "SECOND", status=409)
    school.publish(sss3, "FIRST")
    school.publish(sss3, "SECOND")
    school.publish(jss1, "SECOND")
    school.publish(jss2, "SECOND", "Green")
    school.publish(sss2, "SECOND", "Silver")
    school.publish(sss2, "SECOND", "Gold")
    both = ((jss1, "SECOND"), (jss2, "SECOND"))
    yield Moment("second term", (*both, (sss2, "SECOND"), (sss3, "SECOND")), whole=True)
    # An earlier term is corrected together with the later ones, which rest on it.
    school.reopen(jss1, "B", "FIRST", status=409)
    for term in ("SECOND", "FIRST"):
        for arm in jss1.arms:
            school.reopen(jss1, arm, term)
    school.correct(jss1, "FIRST", "Yoruba", jss1.students["B"][0], 0.11)
    # Students who are put in while it is reopened have nothing in the papers of the first term.
    school.take(jss1, "Music", without[:2])
    school.publish(jss1, "FIRST", status=409)
    school.correct(jss1, "FIRST", "Music", jss1.takers["Music"][0], 0.7, blanks="EXCUSED")
    school.publish(jss1, "SECOND", "B")
    school.publish(jss1, "FIRST", status=409)
    school.reopen(jss1, "B", "SECOND")
    school.publish(jss1, "FIRST")
    school.publish(jss1, "SECOND")
    yield Moment("second term corrected", ((jss1, "FIRST"), (jss1, "SECOND")))


def _put_pictures(school: GoldenSchool) -> None:
    for which, picture in (("logo", LOGO), ("signature", SIGNATURE)):
        files = {"image": (BytesIO(picture), f"{which}.png")}
        answer = school.api.put(f"/letterhead/{which}", data=files, content_type="multipart/form-data")
        assert answer.status_code == 200, answer.get_data(as_text=True)


def _third_term(school: GoldenSchool) -> Iterator[Moment]:
    """By whole percents, with attendance by registers; the lowest grade ends at 25, and a student leaves the class."""
    jss1, jss2, sss2 = (school.classes[name, SESSION] for name in ("JSS 1", "JSS 2", "SSS 2"))
    school.clock.go_to("2026-04-27")
    school.send("PATCH", "/result-settings", THIRD_SETTINGS)
    _calendar(school, "THIRD", "2026-04-27", "2026-07-24", next_term_begins="2026-09-14")
    (lowest,) = [band for band in school.send("GET", "/grade-configs") if band["letter_grade"] == "F9"]
    school.send("PATCH", f"/grade-configs/{lowest['id']}", {"lower_threshold": 25, "remarks": "Not passed"})
    _keep_registers(school, jss1)
    gone = jss1.students["B"][2]
    school.send("PATCH", f"/cohorts/{jss1.cohort['id']}/remove_students", {"student_ids": [gone]})
    jss1.leave(gone)
    school.clock.go_to("2026-07-06")
    for of in (jss1, sss2):
        school.papers(of, "THIRD", "SECOND_TERM", "THIRD_TERM")
        school.mark(of, "THIRD")
        school.say(of, "THIRD", came=False)
        school.submit(of, "THIRD")
        school.publish(of, "THIRD")
    # Of another class nothing of the third term is handed in yet, and something is blank.
    school.papers(jss2, "THIRD")
    school.mark(jss2, "THIRD", blanks=0.02)
    yield Moment("third term", ((jss2, "THIRD"), (jss1, "THIRD"), (sss2, "THIRD")), whole=True, own=True)
    # By the correction of one score the figures of the class are new on everybody's card.
    school.reopen(jss1, "A", "THIRD")
    school.reopen(jss1, "B", "THIRD")
    school.correct(jss1, "THIRD", "English Language", jss1.students["A"][1], 0.02)
    school.publish(jss1, "THIRD")
    yield Moment("third term corrected", ((jss1, "THIRD"),))


def _keep_registers(school: GoldenSchool, jss1: SchoolClass) -> None:
    school.send("PATCH", "/attendance-settings", {"roll_up": "REGISTERS", "lock_after": None})
    for day in (28, 29, 30):
        school.clock.go_to(f"2026-04-{day}", 10)
        for arm in jss1.arms if day != 30 else ("A",):
            marks = [
                {"student": student, "code": school.random.choice("AEL")}
                for student in jss1.students[arm]
                if school.random.random() < 0.2
            ]
            register = {"batch": jss1.arms[arm], "date": f"2026-04-{day}", "part": "DAY", "default": "P"}
            school.send("PUT", "/registers", {**register, "marks": marks, "submit": True})


def _promotion(school: GoldenSchool) -> Iterator[Moment]:
    """Promote by rules of levels, undo it, and promote again."""
    jss1, sss2, sss3 = (school.classes[name, SESSION] for name in ("JSS 1", "SSS 2", "SSS 3"))
    school.clock.go_to("2026-07-20")
    mathematics = school.bases["Mathematics"]["id"]
    rules = [
        {"level": JUNIOR, "minimum_average": 55, "trial_average": 45, "maximum_failed": 3},
        {
            "level": None,
            "minimum_average": 50,
            "required_subjects": [mathematics],
            "required_percent": 40,
            "minimum_terms": 2,
        },
    ]
    school.send("PUT", "/promotion-rules", rules)
    above = {name: school.class_(name, NEXT, ("A",)) for name in ("JSS 1", "JSS 2", "SSS 2", "SSS 3")}
    targets = ((jss1, "JSS 2", "JSS 1"), (sss2, "SSS 3", "SSS 2"), (sss3, None, None))
    moves = [
        {
            "batch": batch,
            "promote_to": up and above[up].arms["A"],
            "repeat_in": again and above[again].arms["A"],
        }
        for of, up, again in targets
        for batch in of.arms.values()
    ]
    body = {"session": SESSION, "moves": moves, "overrides": []}
    dry = school.send("POST", "/promotions?dry_run=true", body, about=SESSION)
    nowhere = [
        decision["student"]["id"]
        for decision in dry["decisions"]
        if decision["outcome"] is None
        or (decision["outcome"] in ("PROMOTED", "REPEATED") and decision["to_batch"] is None)
    ]
    overrides = [
        {
            "student": student,
            "outcome": "GRADUATED" if number else "LEFT_OUT",
            "reason": "As the staff decided",
        }
        for number, student in enumerate(nowhere)
    ]
    made = _promote(school, SESSION, moves, overrides)
    school.reopen(jss1, "A", "THIRD", status=409)
    yield Moment("promoted", ((jss1, "THIRD"), (sss2, "THIRD"), (sss3, "SECOND")), whole=True)
    school.send("DELETE", f"/promotions/{made['id']}", status=200)
    school.send("POST", "/promotions?dry_run=true", body, about=f"{SESSION} again")
    yield Moment("promotion undone", ())
    _promote(school, SESSION, moves, overrides)


def _late_comers(school: GoldenSchool) -> Iterator[Moment]:
    """Somebody comes while the subjects of an arm are handed in."""
    jss3 = school.class_("JSS 3", SESSION, ("A",), JUNIOR_SUBJECTS[:3])
    school.admit(jss3, "A", 3)
    school.papers(jss3, "THIRD")
    school.mark(jss3, "THIRD")
    first, second, third = jss3.subjects
    school.submit(jss3, "THIRD", first)
    school.admit(jss3, "A", 1)
    for blanks in ("REFUSE", "EXCUSED"):
        school.submit(jss3, "THIRD", second, blanks=blanks)
        school.submit(jss3, "THIRD", third, blanks=blanks)
    school.publish(jss3, "THIRD", status=None)
    for subject in jss3.subjects:
        school.correct(jss3, "THIRD", subject, jss3.known[0], 0.5, blanks="ABSENT")
    # And once all is handed in, before it is published; then something is corrected.
    school.admit(jss3, "A", 1)
    school.publish(jss3, "THIRD", status=None)
    yield Moment("with late comers", ((jss3, "THIRD"),))
    school.reopen(jss3, "A", "THIRD", status=None)
    school.correct(jss3, "THIRD", first, jss3.known[1], 0.9)
    school.publish(jss3, "THIRD", status=None)
    school.send("PATCH", "/result-settings", {"verification": False})
    yield Moment("late comers corrected, verification off", ((jss3, "THIRD"),), whole=True)
