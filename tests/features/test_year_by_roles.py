"""A year of a school by the roles that a new school has; the account of its first day is used on that day alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

import pytest
from flask import Flask

from tenants.clock import now
from tests.client import ApiClient
from tests.factories import PASSWORD, Factory

TERMS = ("FIRST", "SECOND", "THIRD")


class Person:
    """Somebody at the API: a client of theirs, with the requests that they are let in for."""

    def __init__(self, client: ApiClient) -> None:
        self.client = client

    def __call__(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request, which is answered 200; returns the answer."""
        return self.client.ok(self.send(method, path, body))

    def send(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request, and return the response."""
        return self.client.request(method, path, **({} if body is None else {"json": body}))

    def refused(self, method: str, path: str, body: Any = None, status: int = 403) -> str:
        """Send a request that is refused; returns the message."""
        answer = self.send(method, path, body)
        assert answer.status_code == status, (method, path, answer.get_json())
        return str(answer.get_json()["message"])

    def invite(self, *users: str) -> list[Person]:
        """Invite users, who take the invitations and so have a password."""
        made = self("POST", "/invitations", {"users": list(users), "everybody": True})
        return [self.take(invitation["code"]) for invitation in made]

    def take(self, code: str) -> Person:
        """Take an invitation."""
        taken = self("POST", "/users/login/invitation", {"code": code, "password": PASSWORD})
        return Person(self.client.using(token=taken["access_token"]["access_token"]))

    def reset(self, user: str) -> None:
        """Set another's password."""
        self("PUT", f"/users/{user}/password", {"password": f"{PASSWORD} anew"})


class School:
    """A new school, whose people come one after the other."""

    def __init__(self, administrator: ApiClient) -> None:
        self.principal = self._first_day(Person(administrator))
        self._set_up()
        self._hire()
        self._enroll()

    @staticmethod
    def _first_day(administrator: Person) -> Person:
        """Let the administrator make the principal's account: all that the account of the first day does."""
        names = {"first_name": "Ngọzi", "last_name": "Ọkáfọ̀", "gender": "FEMALE"}
        user = {"username": "principal", "password": PASSWORD, **names}
        made = administrator("POST", "/users", user)["user"]["id"]
        roles = {role["name"]: role["id"] for role in administrator("GET", "/roles")}
        administrator("PUT", f"/users/{made}/roles", {"role": roles["Principal"]})
        (principal,) = administrator.invite(made)
        return principal

    def _set_up(self) -> None:
        """Let the principal decide how the school works, and open the year."""
        principal, year = self.principal, now().year
        principal("PATCH", "/settings", {"time_zone": "Africa/Lagos"})
        principal("PATCH", "/letterhead", {"principal_name": "Mrs Ngọzi Ọkáfọ̀"})
        principal("PATCH", "/result-settings", {"show_teachers": True})
        principal("PUT", "/promotion-rules", [{"level": None, "minimum_average": 40}])
        dates = {"start_date": f"{year}-01-01", "end_date": f"{year}-12-31"}
        self.session = principal("POST", "/sessions", {"name": "This year", **dates, "current": True})["id"]
        for term in TERMS:
            body = {"session_id": self.session, "term": term, "display_name": f"{term.title()} Term"}
            principal("POST", "/terms", body)
        following = {"start_date": f"{year + 1}-01-01", "end_date": f"{year + 1}-12-31"}
        self.following = principal("POST", "/sessions", {"name": "Next year", **following})["id"]

    def _hire(self) -> None:
        """Let the principal hire a registrar and teachers, give them their roles and invite them."""
        principal = self.principal
        self.roles = {role["name"]: role["id"] for role in principal("GET", "/roles")}
        _, self.registrar, self.registrar_account = self._hired("Registrar")
        self.staff, self.teachers, self.accounts = zip(*(self._hired("Teacher") for _ in "AB"), strict=True)

    def _hired(self, role: str) -> tuple[str, Person, str]:
        """Let the principal hire somebody; returns the employee, the person, and the account."""
        principal = self.principal
        employee = principal("POST", "/employees", Factory(principal.client).employee_body())
        (user,) = principal("GET", f"/users?search={employee['username']}")["data"]
        principal("PUT", f"/users/{user['id']}/roles", {"role": self.roles[role]})
        return employee["id"], principal.invite(user["id"])[0], user["id"]

    def _enroll(self) -> None:
        """Let the registrar make the class with two arms, and put students, guardians and teachers there."""
        registrar = self.registrar
        rooms = [
            registrar("POST", "/classrooms", {"name": name, "level": name})["id"] for name in ("J1", "J2")
        ]
        base = registrar("POST", "/templates", {"name": "Mathematics", "code": "MTH"})["id"]
        cohort = {"classroom": rooms[0], "session_id": self.session, "batches": ["A", "B"]}
        self.cohort = registrar("POST", "/cohorts", cohort)["id"]
        arms = {batch["name"]: batch["id"] for batch in registrar("GET", f"/cohorts/{self.cohort}/batches")}
        self.arms = [arms["A"], arms["B"]]
        subject = {"cohort_id": self.cohort, "subject_id": base, "elective": False}
        self.subject = registrar("POST", "/cohort-subjects", subject)["id"]
        self.above, self.again = (
            registrar("POST", "/cohorts", {"classroom": rooms[above], "session_id": self.following})["id"]
            for above in (1, 0)
        )
        self.students: list[list[dict[str, Any]]] = []
        for number, batch in enumerate(self.arms):
            made = [
                registrar("POST", "/students", {
                    "first_name": first, "last_name": "Bàlógun", "admission_number": f"Q/{number}{place}",
                    "guardian": {
                        "full_name": f"Mother of {first}{number}", "relationship": "mother",
                        "phone_number": f"+234 803 123 45{number}{place}", "email_address": None,
                    },
                })
                for place, first in enumerate(("Adé", "Bọ́lá"))
            ]  # fmt: skip
            body = {"students": [student["id"] for student in made], "batch": batch}
            registrar("POST", f"/cohorts/{self.cohort}/enrollment", body)
            self.students.append(made)
            registrar("PATCH", f"/teachers/{batch}/add_to_batch", {"teacher_id": self.staff[number]})
        rows = [
            {"cohort_subject": self.subject, "employee": employee, "batch": batch}
            for employee, batch in zip(self.staff, self.arms, strict=True)
        ]
        registrar("PUT", "/subject-teachers", {"assignments": rows})

    def assessment(self, teacher: Person, term: str, **fields: Any) -> str:
        """Let a teacher add an examination of 100 points of the subject."""
        body = {
            "category": "EXAM", "subject": self.subject, "name": "Examination", "abbreviation": "EX",
            "due_date": f"{now().year}-06-15", "total_points": 100, "term": term, "description": "All of it",
            "file_name": "exam.xlsx", "include_in_final": True, "publish_scores": True, **fields,
        }  # fmt: skip
        made: str = teacher("POST", "/assessments", body)["id"]
        return made

    def teach(self, term: str) -> None:
        """Let the teachers of both arms take an examination, enter scores, traits and comments, and submit."""
        first, _ = self.teachers
        wrong = self.assessment(first, term, name="Wrong")
        first("DELETE", f"/assessments/{wrong}")
        self.paper = self.assessment(first, term)
        first("PATCH", f"/assessments/{self.paper}", {"name": "Examination of the term"})
        for number, (teacher, batch) in enumerate(zip(self.teachers, self.arms, strict=True)):
            mine = [student["id"] for student in self.students[number]]
            entered = [self.enter(teacher, student, batch, 90 - 10 * number) for student in mine]
            # One was another's: it is cleared and entered anew.
            teacher("DELETE", f"/gradebooks/{entered[0]}")
            self.enter(teacher, mine[0], batch, 80)
            said_of = [{"student": student, "form_teacher_comment": "Good."} for student in mine]
            teacher("PUT", "/comments", {"batch": batch, "term": term, "comments": said_of})
            traits = [
                {"student": student, "metric_type": "AFFECTIVE", "metric_scores": {"neatness": 4}}
                for student in mine
            ]
            teacher("PUT", f"/metrics?batch={batch}&term={term}", traits)
            teacher("POST", f"/cohort-subjects/{self.subject}/submission", {"term": term, "batch": batch})
        refused = first.refused("DELETE", f"/assessments/{self.paper}")
        assert "every arm" in refused

    def enter(self, teacher: Person, student: str, batch: str, score: int) -> str:
        """Enter a score; returns the entry's id."""
        body = {"assessment": self.paper, "student": student, "batch": batch, "score": score}
        made: str = teacher("POST", "/gradebooks", body)["id"]
        return made

    def publish(self, term: str) -> list[str]:
        """Let the principal say something of everybody, and publish."""
        for number, batch in enumerate(self.arms):
            comments = [
                {"student": student["id"], "principal_comment": "Go on."} for student in self.students[number]
            ]
            self.principal("PUT", "/comments", {"batch": batch, "term": term, "comments": comments})
        body = {"term": term, "batches": self.arms}
        return [publication["id"] for publication in self.principal("POST", "/publications", body)]

    @property
    def everybody(self) -> Iterable[dict[str, Any]]:
        """The students of both arms."""
        return (student for arm in self.students for student in arm)


@pytest.fixture(scope="module")
def original(prepared: Callable[..., School]) -> School:
    return prepared(lambda make: School(make.api))


@pytest.fixture
def school(rehearsed: Flask, original: School) -> School:
    return deepcopy(original)


def test_a_year_goes_by_without_the_account_of_the_first_day(school):
    registrar, principal = school.registrar, school.principal
    child = school.students[0][0]
    (mother,) = registrar("GET", f"/students/{child['id']}/guardians")
    mother_id = mother["guardian"]

    # Those who read results get in by the registrar.
    slips = registrar("POST", "/invitations", {"batch": school.arms[0]})
    code = next(slip["code"] for slip in slips if slip["user"] == child["user"])
    student = registrar.take(code)
    account = registrar("PUT", f"/guardians/{mother_id}/account", {"username": "mother.of.ade"})["user"]
    (guardian,) = registrar.invite(account)
    registrar.reset(school.students[1][0]["user"])

    card = f"/students/{child['id']}/results?session={school.session}&term="
    for term in TERMS:
        school.teach(term)
        assert student.send("GET", f"{card}{term}").status_code == 404
        published = school.publish(term)
        for reader in (student, guardian):
            assert reader("GET", f"{card}{term}")["student"]["id"] == child["id"]

    # A subject that nobody teaches is seen, and so are the subjects that are not handed in.
    wanting = f"/cohort-subjects?session={school.session}&without_teacher=true"
    assert registrar("GET", wanting)["data"] == []
    assert registrar("GET", "/submissions?state=OPEN") == []

    # A score was wrong: the principal reopens it, and the teacher corrects it.
    teacher, batch = school.teachers[0], school.arms[0]
    why = {"reason": "A paper was found"}
    for publication in published:
        principal("POST", f"/publications/{publication}/reopening", why)
    principal(
        "POST", f"/cohort-subjects/{school.subject}/reopening", {"term": "THIRD", "batch": batch, **why}
    )
    (entry,) = teacher("GET", f"/gradebooks?assessment={school.paper}&student={child['id']}")["data"]
    teacher("PATCH", f"/gradebooks/{entry['id']}", {"score": 95})
    teacher("POST", f"/cohort-subjects/{school.subject}/submission", {"term": "THIRD", "batch": batch})
    school.publish("THIRD")
    assert guardian("GET", f"{card}THIRD")["subjects"][0]["percent"] == 95

    # A teacher leaves, and the other has both arms from today on.
    leaver, heir = school.staff
    school.registrar.refused("DELETE", f"/employees/{leaver}?hand_over={heir}")
    assert "teaches 1 subject" in principal.refused("DELETE", f"/employees/{leaver}", status=409)
    principal("DELETE", f"/employees/{leaver}?hand_over={heir}")
    (mine,) = school.teachers[1]("GET", "/cohort-subjects")["data"]
    assert mine["id"] == school.subject
    assert len(school.teachers[1]("GET", "/students")["data"]) == 4
    assert registrar("GET", wanting)["data"] == []

    moves = [{"batch": arm, "promote_to": school.above, "repeat_in": school.again} for arm in school.arms]
    body = {"session": school.session, "moves": moves, "overrides": []}
    seen = principal("POST", "/promotions?dry_run=true", body)
    principal("POST", "/promotions", {**body, "fingerprint": seen["fingerprint"]})
    principal("PATCH", f"/sessions/{school.following}", {"current": True})
    promoted = registrar("GET", f"/cohorts/{school.above}/students")
    assert {student["id"] for student in promoted} == {student["id"] for student in school.everybody}
    assert guardian("GET", f"{card}THIRD")["subjects"][0]["percent"] == 95


def test_an_account_is_judged_by_all_that_it_has(school):
    registrar, principal = school.registrar, school.principal
    child = school.students[0][0]
    (mother,) = registrar("GET", f"/students/{child['id']}/guardians")
    teacher, guardian = school.accounts[1], mother["guardian"]

    for account in (teacher, school.accounts[0]):
        registrar.refused("POST", "/invitations", {"users": [account], "everybody": True})
        registrar.refused("PUT", f"/users/{account}/password", {"password": f"{PASSWORD} anew"})
    # A guardian who is a teacher too: neither invited nor reset by the registrar.
    principal("PUT", f"/guardians/{guardian}/account", {"user": teacher})
    registrar.refused("POST", "/invitations", {"users": [teacher], "everybody": True})
    registrar.refused("PUT", f"/users/{teacher}/password", {"password": f"{PASSWORD} anew"})

    for account in (*school.accounts, school.registrar_account, child["user"]):
        principal.reset(account)
        principal.invite(account)


def test_nobody_gives_a_permission_that_they_lack(school):
    principal, registrar = school.principal, school.registrar
    user = school.accounts[0]

    assert "write:roles" in principal.refused("PUT", "/role-reaches?dry_run=true", {"roles": []})
    principal.refused("PATCH", f"/roles/{school.roles['Teacher']}/permissions", {"permissionIds": []})
    principal.refused("PUT", f"/users/{user}/roles", {"role": school.roles["Administrator"]})
    for role in ("Principal", "Registrar", "Teacher", "Bursar", "Viewer"):
        principal("PUT", f"/users/{user}/roles", {"role": school.roles[role]})
    for role in ("Principal", "Teacher"):
        registrar.refused("PUT", f"/users/{school.registrar_account}/roles", {"role": school.roles[role]})


def test_the_account_of_the_first_day_is_closed_to_the_principal(school, place):
    principal = school.principal

    for request in (
        ("PUT", f"/users/{place.admin_id}/password", {"password": f"{PASSWORD} anew"}),
        ("POST", "/invitations", {"users": [str(place.admin_id)], "everybody": True}),
        ("DELETE", f"/users/{place.admin_id}/delete"),
    ):
        principal.refused(*request)


def test_an_assessment_of_teachers_of_other_arms(school):
    """Both teachers see one that either has made; its scores need both."""
    first, second = school.teachers
    school.paper = school.assessment(first, "FIRST")
    assert second("GET", f"/assessments/{school.paper}")["id"] == school.paper
    school.enter(second, school.students[1][0]["id"], school.arms[1], 50)

    assert "every arm" in first.refused("DELETE", f"/assessments/{school.paper}")
    school.principal("DELETE", f"/assessments/{school.paper}")


def test_a_wrong_subject_is_taken_back_and_one_for_all_becomes_an_elective(school):
    """French was entered for the whole class by mistake, and published; Music is left to those who want it."""
    registrar, principal, teacher = school.registrar, school.principal, school.teachers[0]
    wrong, music = (_published_for_all(school, name) for name in ("French", "Music"))
    children = [student["id"] for student in school.everybody]
    school.teach("FIRST")
    published = school.publish("FIRST")

    def subjects(student: str) -> list[str]:
        results = principal("GET", f"/students/{student}/results?term=FIRST")["subjects"]
        return [result["subject"]["name"] for result in results]

    assert subjects(children[0]) == ["French", "Mathematics", "Music"]

    # Published: Music becomes an elective, and a student who drops it has it on the card of the term.
    registrar("PATCH", f"/cohort-subjects/{music}", {"elective": True})
    principal("DELETE", f"/cohort-subjects/{music}/students/{children[0]}")

    # French goes altogether: nothing that is published or handed in may have it.
    assert "in use by 1 assessment" in principal.refused("DELETE", f"/cohort-subjects/{wrong}", status=409)
    why = {"reason": "It is not taught in this class"}
    for publication in published:
        principal("POST", f"/publications/{publication}/reopening", why)
    principal("POST", f"/cohort-subjects/{wrong}/reopening", {"term": "FIRST", **why})
    listed = f"/assessments?cohort={school.cohort}&subject={wrong}&term=FIRST"
    (paper,) = principal("GET", listed)["data"]
    principal("DELETE", f"/assessments/{paper['id']}")
    principal("DELETE", f"/cohort-subjects/{wrong}")
    school.publish("FIRST")

    assert [subjects(child) for child in children] == [["Mathematics", "Music"]] * 4
    assert teacher.send("GET", f"/cohort-subjects/{wrong}").status_code == 404


def _published_for_all(school: School, name: str) -> str:
    """Let the principal teach a subject to everyone, mark it and hand it in; returns the cohort subject's id."""
    principal = school.principal
    base = principal("POST", "/templates", {"name": name, "code": name[:3].upper()})["id"]
    body = {"cohort_id": school.cohort, "subject_id": base, "elective": False}
    subject: str = principal("POST", "/cohort-subjects", body)["id"]
    paper = school.assessment(principal, "FIRST", subject=subject)
    scores = [{"student": student["id"], "score": 50} for student in school.everybody]
    principal("PUT", f"/assessments/{paper}/scores", {"scores": scores})
    principal("POST", f"/cohort-subjects/{subject}/submission", {"term": "FIRST"})
    return subject
