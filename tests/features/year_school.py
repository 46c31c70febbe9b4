"""A school of two classes whose year is lived by its people, and noted for a second computing of its figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal
from io import BytesIO
from random import Random
from typing import Any

from openpyxl import load_workbook

from tenants.clock import now
from tests.client import ApiClient
from tests.features.results.figures.classes import WAEC
from tests.features.results.figures.oracle import TERMS, Paper, Rules, SampleClass, term_results
from tests.features.scores.marksheets.arms import fill
from tests.features.test_year_by_roles import Person, School
from tests.sheets.workbooks import saved

NAMES = ("Mathematics", "English Language", "Literature-in-English", "Igbo", "Physics", "Music")
PAPERS = (("CA1", "T1", 10), ("CA2", "T2", 15), ("CA3", "PR", 12.5), ("EXAM", "EX", 70))
RULES = Rules(
    weighting="CATEGORIES",
    weights={name: Decimal(weight) for name, weight in (("CA1", 10), ("CA2", 10), ("CA3", 20), ("EXAM", 60))},
    percent_from="MARKS",
    bands=tuple((Decimal(lowest), letter, remark) for lowest, letter, remark in WAEC),
)
RULE = {
    "level": "JSS", "minimum_average": 55, "trial_average": 50, "required_percent": 45, "maximum_failed": 2,
    "minimum_terms": 3,
}  # fmt: skip
"""Of promotion in the lower class; Mathematics is required."""
WHY = {"reason": "A paper was found"}
Mark = Decimal | str


@dataclass
class YearClass:
    """A class of the year, and all that is entered of it."""

    cohort: str
    arms: list[str]
    subjects: dict[str, str] = field(default_factory=dict)
    noted: SampleClass = field(default_factory=lambda: SampleClass(RULES, {}, {}, set(), [], {}, {}))
    of_terms: dict[str, SampleClass] = field(default_factory=dict)

    @property
    def subjects_of_arms(self) -> list[tuple[str, str]]:
        """Each subject in each arm."""
        return [(name, arm) for name in self.subjects for arm in self.arms]

    def students(self, arm: str) -> list[str]:
        """The students of an arm."""
        return [student for student, batch in self.noted.batch_of.items() if batch == arm]

    def close(self, term: str) -> None:
        """Note arms and subjects of each student at the first publication of a term."""
        taken, batch_of = {*self.noted.taken}, dict(self.noted.batch_of)
        self.of_terms.setdefault(term, replace(self.noted, taken=taken, batch_of=batch_of))


class Year(School):
    """Two classes of two arms; each subject has one teacher in all of them, and the last is an elective.

    `settle` is applied to the mark sheets of the first term between download and upload.
    """

    def __init__(
        self, api: ApiClient, students: int, subjects: int, settle: Callable[[list[bytes]], list[bytes]]
    ) -> None:
        self.random, self.settle = Random(2026), settle
        self.size, self.names = students, NAMES[:subjects]
        self.numbers: dict[str, str] = {}
        self.percents: dict[str, dict[str, dict[str, Decimal]]] = {}
        self.sheets: Counter[tuple[str, str]] = Counter()
        self.left: set[str] = set()
        super().__init__(api)

    # The first days

    def _set_up(self) -> None:
        super()._set_up()
        weights = [
            {"level": None, "category": category, "weight": float(of)}
            for category, of in RULES.weights.items()
        ]
        self.principal("PATCH", "/result-settings", {"weighting": "CATEGORIES", "weights": weights})

    def _hire(self) -> None:
        super()._hire()
        for _ in self.names[2:]:
            employee, person, _ = self._hired("Teacher")
            self.staff, self.teachers = (*self.staff, employee), (*self.teachers, person)
        self.teacher_of = dict(zip(self.names, zip(self.teachers, self.staff, strict=True), strict=True))

    def _enroll(self) -> None:
        registrar = self.registrar
        lower, upper, next_room = (
            registrar("POST", "/classrooms", {"name": name, "level": name[:3]})["id"]
            for name in ("JSS 1", "SSS 3", "JSS 2")
        )
        self.bases = {name: self._base(name) for name in self.names}
        self.lower, self.upper = self._class(lower), self._class(upper)
        self.above, self.again, self.once_more = (
            registrar("POST", "/cohorts", {"classroom": room, "session_id": self.following})["id"]
            for room in (next_room, lower, upper)
        )
        required = {"required_subjects": [self.bases["Mathematics"]]}
        self.principal("PUT", "/promotion-rules", [{**RULE, **required}])

    def _base(self, name: str) -> str:
        made: str = self.registrar("POST", "/templates", {"name": name, "code": name[:3].upper()})["id"]
        return made

    def _class(self, room: str) -> YearClass:
        """Let the registrar make a class, put students there, and give it teachers."""
        body = {"classroom": room, "session_id": self.session, "batches": ["A", "B"]}
        cohort = self.registrar("POST", "/cohorts", body)["id"]
        arms = {batch["name"]: batch["id"] for batch in self.registrar("GET", f"/cohorts/{cohort}/batches")}
        made = YearClass(cohort, [arms["A"], arms["B"]])
        for name in self.names:
            self.enter_subject(made, name, self.teacher_of[name][1], elective=name == self.names[-1])
        for number, arm in enumerate(made.arms):
            self.admit(made, arm, self.size)
            self.registrar("PATCH", f"/teachers/{arm}/add_to_batch", {"teacher_id": self.staff[number]})
        self.choose(made, [*made.noted.batch_of][::2])
        return made

    def enter_subject(self, class_: YearClass, name: str, employee: str, *, elective: bool = False) -> None:
        """Let the registrar enter a subject of a class, and its teacher; compulsory, all who are there take it."""
        body = {"cohort_id": class_.cohort, "subject_id": self.bases[name], "elective": elective}
        subject = self.registrar("POST", "/cohort-subjects", body)["id"]
        rows = [{"cohort_subject": subject, "employee": employee, "batch": None}]
        self.registrar("PUT", "/subject-teachers", {"assignments": rows})
        class_.subjects[name] = subject
        class_.noted.base_of[subject] = self.bases[name]
        if not elective:
            class_.noted.taken.update((student, subject) for student in class_.noted.batch_of)

    def teach_too(self, class_: YearClass, name: str) -> None:
        """Enter a subject of a class that the school did not have; a teacher of another teaches it, too."""
        self.bases[name] = self._base(name)
        self.teacher_of[name] = self.teacher_of[self.names[0]]
        self.enter_subject(class_, name, self.teacher_of[name][1])

    def add_arm(self, class_: YearClass, name: str) -> str:
        """Let the registrar add an arm, with a form teacher."""
        arm: str = self.registrar("POST", f"/cohorts/{class_.cohort}/batches", {"name": name})["id"]
        self.registrar("PATCH", f"/teachers/{arm}/add_to_batch", {"teacher_id": self.staff[0]})
        class_.arms.append(arm)
        return arm

    def admit(self, class_: YearClass, arm: str, number: int = 1, **enrollment: Any) -> list[str]:
        """Let the registrar admit students to an arm: they take the compulsory subjects."""
        made = []
        for _ in range(number):
            admission = f"Y/{len(self.numbers) + 1:03}"
            body = {"first_name": "Chídí", "last_name": f"Ọkáfọ̀ {admission}", "admission_number": admission}
            made.append(self.registrar("POST", "/students", body)["id"])
            self.numbers[made[-1]] = admission
        self.place(class_, arm, *made, **enrollment)
        compulsory = [subject for name, subject in class_.subjects.items() if name != self.names[-1]]
        class_.noted.taken.update((student, subject) for student in made for subject in compulsory)
        return made

    def place(self, class_: YearClass, arm: str, *students: str, **enrollment: Any) -> None:
        """Let the registrar put students into an arm: new ones, or from another."""
        body = {"students": [*students], "batch": arm, **enrollment}
        self.registrar("POST", f"/cohorts/{class_.cohort}/enrollment", body)
        class_.noted.batch_of.update(dict.fromkeys(students, arm))

    def leave(self, class_: YearClass, student: str) -> None:
        """Let the registrar note that a student has left."""
        self.registrar("PATCH", f"/students/{student}", {"status": "WITHDRAWN"})
        class_.noted.batch_of.pop(student)
        self.left.add(student)

    def choose(self, class_: YearClass, students: list[str]) -> None:
        """Let the registrar put students into the elective."""
        elective = class_.subjects[self.names[-1]]
        self.registrar("PATCH", f"/cohort-subjects/{elective}/students", students)
        class_.noted.taken.update((student, elective) for student in students)

    def mother_of(self, child: str) -> Person:
        """Let the registrar enter a mother, who takes her invitation."""
        students = [{"student": child, "relationship": "mother"}]
        body = {"full_name": "Ngọzi Ọkáfọ̀", "students": students}
        guardian = self.registrar("POST", "/guardians", body)["id"]
        account = self.registrar("PUT", f"/guardians/{guardian}/account", {"username": "mother"})
        (mother,) = self.registrar.invite(account["user"])
        return mother

    def drop(self, class_: YearClass, arm: str) -> None:
        """Let the principal take somebody of an arm out of the elective."""
        elective = class_.subjects[self.names[-1]]
        student = next(member for member in class_.students(arm) if (member, elective) in class_.noted.taken)
        self.principal("DELETE", f"/cohort-subjects/{elective}/students/{student}")
        class_.noted.taken.remove((student, elective))

    # A term

    def set_paper(
        self, class_: YearClass, name: str, term: str, category: str, short: str, points: Any
    ) -> None:
        """Let the teacher of a subject enter an assessment."""
        body = {
            "category": category, "subject": class_.subjects[name], "name": short, "abbreviation": short,
            "due_date": f"{now().year}-06-15", "total_points": points, "term": term, "description": "",
            "file_name": "paper.xlsx", "include_in_final": True, "publish_scores": True,
        }  # fmt: skip
        made = self.teacher_of[name][0]("POST", "/assessments", body)["id"]
        paper = Paper(made, class_.subjects[name], term, category, Decimal(str(points)))
        class_.noted.papers.append(paper)

    def set_papers(self, class_: YearClass, term: str) -> None:
        """Let the teachers of a class enter the assessments of a term."""
        for name in class_.subjects:
            for category, short, points in PAPERS:
                self.set_paper(class_, name, term, category, short, points)

    def mark(self, term: str, *classes: YearClass) -> None:
        """Let the teachers take the mark sheets of classes, fill them in, and send them back."""
        keys, filled = [], []
        for class_ in classes:
            for name, arm in class_.subjects_of_arms:
                keys.append((self.teacher_of[name][0], self._sheet(class_, name, arm, term)))
                filled.append(self._filled(class_, name, arm, term, *keys[-1]))
        if term == TERMS[0]:
            filled = self.settle(filled)
        for (teacher, path), content in zip(keys, filled, strict=True):
            form = {"mark_sheet": (BytesIO(content), "marks.xlsx")}
            answer = teacher.client.post(path, data=form, content_type="multipart/form-data")
            done = teacher.client.ok(answer)
            assert (done["updated"], done["unchanged"]) == (0, 0)
            self.sheets[term, "up"] += 1

    @staticmethod
    def _sheet(class_: YearClass, name: str, arm: str, term: str) -> str:
        return f"/cohort-subjects/{class_.subjects[name]}/mark-sheet?batch={arm}&term={term}"

    def _filled(self, class_: YearClass, name: str, arm: str, term: str, teacher: Person, path: str) -> bytes:
        """Download a mark sheet and fill it in; the first two students of an arm have the same marks."""
        answer = teacher.client.get(path)
        assert answer.status_code == 200, answer.get_data(as_text=True)
        self.sheets[term, "down"] += 1
        subject = class_.subjects[name]
        written: dict[str, dict[str, Any]] = {}
        first, *others = class_.students(arm)
        for paper in [
            paper for paper in class_.noted.papers if (paper.subject, paper.term) == (subject, term)
        ]:
            short = next((short for category, short, _ in PAPERS if category == paper.category), "BF")
            heading = f"{short} ({paper.points.normalize():f})"
            for student in class_.students(arm):
                if (student, subject) not in class_.noted.taken:
                    continue
                mark = self._mark(class_, paper, student)
                if student in others[:1] and (first, subject) in class_.noted.taken:
                    mark = self.mark_of(class_, paper.id, first)
                self.note(class_, paper.id, student, mark)
                cell = float(mark) if isinstance(mark, Decimal) else mark
                written.setdefault(self.numbers[student], {})[heading] = cell
        return saved(fill(load_workbook(BytesIO(answer.data)), written))

    def _mark(self, class_: YearClass, paper: Paper, student: str) -> Mark | None:
        """Draw a mark, in halves: some are absent or excused. The newest student has come after the first test."""
        newest = student == [*class_.noted.batch_of][-1]
        if paper.category == "FIRST_TERM":
            return Decimal("61.5") if newest else None
        if newest and paper.category == "CA1":
            return "EXCUSED"
        chance = self.random.random()
        if chance < 0.06:
            return "ABSENT" if chance < 0.03 else "EXCUSED"
        ability = Random(self.numbers[student]).uniform(0.3, 0.85) + self.random.uniform(-0.15, 0.15)
        return Decimal(int(2 * float(paper.points) * ability)) / 2

    @staticmethod
    def note(class_: YearClass, paper: str, student: str, mark: Mark | None) -> None:
        """Note a mark in place of another."""
        class_.noted.scores.pop((paper, student), None)
        class_.noted.absences.pop((paper, student), None)
        if isinstance(mark, Decimal):
            class_.noted.scores[paper, student] = mark
        elif mark is not None:
            class_.noted.absences[paper, student] = mark

    @staticmethod
    def mark_of(class_: YearClass, paper: str, student: str) -> Mark | None:
        """The mark that is noted."""
        of = (paper, student)
        return class_.noted.scores.get(of, class_.noted.absences.get(of))

    def hold_term(self, term: str, marked: Callable[[], None] = lambda: None) -> None:
        """Let both classes have a term, until it is published; `marked` is called between marks and submission."""
        classes = (self.lower, self.upper)
        for class_ in classes:
            self.set_papers(class_, term)
        if term == "SECOND":
            self.set_paper(self.lower, "Mathematics", term, "FIRST_TERM", "BF", 100)
        self.mark(term, *classes)
        marked()
        for class_ in classes:
            for name, subject in class_.subjects.items():
                self.teacher_of[name][0]("POST", f"/cohort-subjects/{subject}/submission", {"term": term})
            self.principal("POST", "/publications", {"term": term, "batches": class_.arms})
            class_.close(term)

    # Corrections

    def publications(self, class_: YearClass, term: str) -> list[dict[str, Any]]:
        """All publications of a class in a term."""
        listed: list[dict[str, Any]] = self.principal(
            "GET", f"/publications?cohort={class_.cohort}&term={term}&pageSize=200"
        )["data"]
        return listed

    def correct(
        self, class_: YearClass, term: str, name: str, category: str, student: str, mark: Mark
    ) -> None:
        """Change a mark of a published term, by the acts that the dry run of its reopening tells."""
        subject = class_.subjects[name]
        arm = class_.of_terms[term].batch_of[student]
        (publication,) = [
            publication["id"]
            for publication in self.publications(class_, term)
            if (publication["state"], publication["batch"]) == ("PUBLISHED", arm)
        ]
        path, asked = f"/publications/{publication}/reopening?dry_run=true", {"subjects": [subject]}
        paper = next(
            paper.id
            for paper in class_.noted.papers
            if (paper.subject, paper.term, paper.category) == (subject, term, category)
        )
        for act in self.principal("POST", path, asked)["chain"]:
            if act["act"] == "SUBMIT":
                said = (
                    {"score": float(mark)} if isinstance(mark, Decimal) else {"score": None, "absence": mark}
                )
                marks = [{"student": student, "assessment": paper, **said}]
                where = f"/cohort-subjects/{subject}/scores?batch={act['batch']}&term={term}"
                self.teacher_of[name][0]("PUT", where, marks)
                self.note(class_, paper, student, mark)
            self._act(name, act)

    def _act(self, name: str, act: dict[str, Any]) -> None:
        """Do an act of a chain."""
        of_arm = {"term": act["term"], "batch": act["batch"]}
        match act["act"]:
            case "REOPEN_PUBLICATION":
                self.principal("POST", f"/publications/{act['publication']}/reopening", WHY)
            case "REOPEN_SUBJECT":
                path = f"/cohort-subjects/{act['cohort_subject']}/reopening"
                self.principal("POST", path, {**of_arm, **WHY})
            case "SUBMIT":
                path = f"/cohort-subjects/{act['cohort_subject']}/submission"
                self.teacher_of[name][0]("POST", path, of_arm)
            case "PUBLISH":
                self.principal("POST", "/publications", {"term": act["term"], "batches": [act["batch"]]})

    def take_back(self, class_: YearClass, term: str, name: str) -> None:
        """Take a subject out of a class that was published with it by mistake."""
        subject = class_.subjects.pop(name)
        for publication in self.publications(class_, term):
            self.principal("POST", f"/publications/{publication['id']}/reopening", WHY)
        self.principal("POST", f"/cohort-subjects/{subject}/reopening", {"term": term, **WHY})
        for paper in [paper for paper in class_.noted.papers if paper.subject == subject]:
            self.principal("DELETE", f"/assessments/{paper.id}")
            class_.noted.papers.remove(paper)
        for assignment in self.registrar("GET", f"/subject-teachers?cohort_subject={subject}")["data"]:
            self.registrar("DELETE", f"/subject-teachers/{assignment['id']}")
        self.principal("DELETE", f"/cohort-subjects/{subject}")
        self.principal("POST", "/publications", {"term": term, "batches": class_.arms})

    # The second computing

    def results_of(self, class_: YearClass, term: str) -> dict[str, dict[str, Any]]:
        """Compute the results of a term by student; later terms rest on its percents."""
        earlier = TERMS[: TERMS.index(term)]
        published = {
            student: {
                before: self.percents[before][student]
                for before in earlier
                if student in self.percents[before]
            }
            for student in class_.noted.batch_of
        }
        sample = class_.of_terms[term]
        computed = term_results(sample, term, published)
        self.percents.setdefault(term, {}).update(
            (student, {
                sample.base_of[subject]: subject_result["percent"]
                for subject, subject_result in result["subjects"].items()
                if subject_result["percent"] is not None
            })
            for student, result in computed.items()
        )  # fmt: skip
        return computed

    def published_terms(self, class_: YearClass) -> Iterator[tuple[str, dict[str, dict[str, Any]]]]:
        """The terms of a class that are published, the earliest first, with the expected figures of their cards."""
        return ((term, self.results_of(class_, term)) for term in class_.of_terms)
