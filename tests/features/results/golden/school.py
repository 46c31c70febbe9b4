"""A school filled by random classes: how records are made, marked, handed in, published and corrected.

Papers, scores, absences, blanks, comments and traits are drawn by a number; `story` has the order of acts.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from school_service.seed.defaults import TRAITS
from tests.features.results.golden.client import RepeatableClient, RepeatableFactory
from tests.features.results.golden.reading import Reader

SEED = 20260724
TERMS = ("FIRST", "SECOND", "THIRD")
JUNIOR, SENIOR = "Junior Secondary", "Senior Secondary"
POINTS = (5, 10, 12.5, 15, 20, 30, 40, 60, 100)
# In one order in every collation, as are all names that PostgreSQL sorts by the server's.
JUNIOR_SUBJECTS = (
    "Basic Science", "Civic Education", "English Language", "French", "Mathematics", "Music", "Yoruba",
)  # fmt: skip
SENIOR_SUBJECTS = (
    "Biology", "Chemistry", "Economics", "English Language", "Further Mathematics", "Mathematics",
)  # fmt: skip
ELECTIVES = {"French", "Music", "Biology", "Economics", "Further Mathematics"}
SURNAMES = (
    "Abíọ́lá", "Adéyẹmí", "Bàlógun", "Bello", "Chukwu", "Dogonyaro", "Eze", "Fáshọlá", "Ɗantata", "Ibrahim", "Iorkyaa",
    "Lawal", "Musa", "Ńwosu", "Òkáfọr", "Okeke", "Ọlátúnjí", "Sani", "Táíwò", "Ugwu", "Yakubu", "O'Brien-Zubairu",
)  # fmt: skip
GIVEN_NAMES = (
    "Aisha", "Bọ́lá", "Chidi", "Dayọ̀", "Ẹfẹ́", "Fatima", "Gbénga", "Halima", "Ifẹ́", "Jide", "Kẹ́hìndé", "Ngọzi", "Tèmi",
    "Zainab",
)  # fmt: skip
REMARKS = (
    "Works with care.",
    "Can do better.",
    "Ó ṣe dáadáa.",
    'A quiet\nand steady pupil <of ours> & "friend".',
)
# Pictures of 16 pixels a side, as bytes: another machine may compress pixels otherwise.
LOGO = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAACQkWg2AAAAFklEQVR42mMQCbAhCTGMahjVMHw1AADpXKABWPhxTAAAAABJRU5ErkJggg=="
)
SIGNATURE = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAACQkWg2AAAAFklEQVR42mOQUMkjCTGMahjVMHw1AAAMTKoBKw4ItAAAAABJRU5ErkJggg=="
)


@dataclass
class SchoolClass:
    """A class in a session: its arms by name, their students, and the subjects with their takers and papers.

    In a `plain` one there is one paper a subject, and few different scores, so that many share a place.
    """

    name: str
    session: str
    cohort: dict[str, Any]
    arms: dict[str, str]
    students: dict[str, list[str]] = field(default_factory=dict)
    subjects: dict[str, str] = field(default_factory=dict)
    takers: dict[str, list[str]] = field(default_factory=dict)
    papers: dict[tuple[str, str], list[dict[str, Any]]] = field(default_factory=dict)
    known: list[str] = field(default_factory=list)
    """Everybody who has been in the class, in the order in which they came."""
    plain: bool = False

    @property
    def everyone(self) -> list[str]:
        """The students of all arms."""
        return [student for students in self.students.values() for student in students]

    def enter(self, student: str, arm: str) -> None:
        """Note that a student comes to an arm, and takes the compulsory subjects."""
        for students in self.students.values():
            if student in students:
                students.remove(student)
        self.students[arm].append(student)
        if student not in self.known:
            self.known.append(student)
        for subject, takers in self.takers.items():
            if subject not in ELECTIVES and student not in takers:
                takers.append(student)

    def leave(self, student: str) -> None:
        """Note that a student leaves the class."""
        for students in (*self.students.values(), *self.takers.values()):
            if student in students:
                students.remove(student)


class GoldenSchool:
    """The school, as its administrator makes it; the reader remembers the answers to acts with a name."""

    def __init__(self, make: RepeatableFactory, reader: Reader) -> None:
        self.make, self.api, self.reader, self.labels = make, make.api, reader, reader.labels
        self.random = Random(SEED)
        self.clock = self.api.repeatable
        self.sessions: dict[str, dict[str, Any]] = {}
        self.terms: dict[tuple[str, str], dict[str, Any]] = {}
        self.rooms: dict[str, dict[str, Any]] = {}
        self.bases: dict[str, dict[str, Any]] = {}
        self.classes: dict[tuple[str, str], SchoolClass] = {}
        self.publications: list[str] = []
        self.callers: dict[str, RepeatableClient] = {}
        self.ability: dict[str, float] = {}
        self.excused: set[str] = set()  # from every paper
        self.number = 0

    def send(
        self, method: str, path: str, body: Any = ..., *, about: str = "", status: int | None = 200
    ) -> Any:
        """Send a request, and remember the answer where it is named; `status` is the expected one, None for any."""
        options = {} if body is ... else {"body": body}
        answer = getattr(self.api, method.lower())(path, **options)
        if about:
            self.reader.tell(f"{method} {path}: {about}", answer)
        assert status in (None, answer.status_code), f"{method} {path}: {answer.get_data(as_text=True)}"
        return answer.get_json()

    def read(self, path: str) -> Any:
        """Read an address."""
        return self.send("GET", path)

    def label(self, record: dict[str, Any], name: str) -> dict[str, Any]:
        """Name a record, as the names of readings have it in place of the id."""
        self.labels[record["id"]] = name
        return record

    def session(self, name: str, start: str, end: str, *terms: str) -> None:
        """Make a session with terms."""
        made = self.make.session(name=name, start_date=start, end_date=end)
        self.sessions[name] = self.label(made, name)
        for term in terms:
            body = {"term": term, "display_name": f"{term.title()} Term"}
            self.terms[name, term] = self.label(self.make.term(made, **body), f"{name} {term}")

    def class_(
        self, name: str, session: str, arms: Sequence[str], subjects: Sequence[str] = ()
    ) -> SchoolClass:
        """Make a class with arms and subjects."""
        cohort = self.make.cohort(self.rooms[name], self.sessions[session])
        # The first arm of a class has its id.
        first, *others = arms
        ids = {first: cohort["id"]}
        self.send("PATCH", f"/batches/{cohort['id']}", {"name": first})
        for arm in others:
            ids[arm] = self.send("POST", f"/cohorts/{cohort['id']}/batches", {"name": arm})["id"]
        made = SchoolClass(name, session, cohort, ids, {arm: [] for arm in arms})
        self.labels |= {batch: f"{name} {arm} {session}" for arm, batch in ids.items()}
        for subject in subjects:
            taught = self.make.cohort_subject(cohort, self.bases[subject], elective=subject in ELECTIVES)
            made.subjects[subject] = self.label(taught, f"{name} {subject}")["id"]
            made.takers[subject] = []
        self.classes[name, session] = made
        return made

    def admit(self, of: SchoolClass, arm: str, number: int) -> list[str]:
        """Enroll new students in an arm."""
        return self.enroll(of, arm, [self.student() for _ in range(number)])

    def student(self) -> str:
        """Make a student."""
        random = self.random
        self.number += 1
        admission_number = f"GS/{self.number:03}"
        fields: dict[str, Any] = {
            "first_name": random.choice(GIVEN_NAMES),
            "last_name": random.choice(SURNAMES),
            "middle_name": random.choice((*GIVEN_NAMES[:4], None, None)),
            "gender": random.choice(("FEMALE", "MALE", None)),
            "dob": random.choice((None, f"20{random.randint(10, 13)}-{random.randint(1, 12):02}-17")),
        }
        given = {name: value for name, value in fields.items() if value is not None}
        made = self.make.student(admission_number=admission_number, **given)
        self.ability[made["id"]] = random.uniform(0.3, 0.95)
        return self.label(made, admission_number)["id"]

    def enroll(self, of: SchoolClass, arm: str, students: Sequence[str]) -> list[str]:
        """Enroll students in an arm of a class, also from another arm."""
        body = {"students": [*students], "batch": of.arms[arm]}
        self.send("POST", f"/cohorts/{of.cohort['id']}/enrollment", body)
        for student in students:
            of.enter(student, arm)
        return [*students]

    def take(self, of: SchoolClass, subject: str, students: Iterable[str]) -> None:
        """Let students take an elective."""
        ids = [*students]
        self.send("PATCH", f"/cohort-subjects/{of.subjects[subject]}/students", ids)
        of.takers[subject] += [student for student in ids if student not in of.takers[subject]]

    def drop(self, of: SchoolClass, subject: str, student: str) -> None:
        """Let a student drop an elective."""
        self.send("DELETE", f"/cohort-subjects/{of.subjects[subject]}/students/{student}")
        of.takers[subject].remove(student)

    def choose(self, of: SchoolClass) -> None:
        """Let some take each elective."""
        for subject in of.subjects:
            if subject in ELECTIVES:
                some = [student for student in of.everyone if self.random.random() < 0.6]
                self.take(of, subject, of.known[:2] if of.plain else some)

    # Papers and scores

    def papers(self, of: SchoolClass, term: str, *more: str) -> None:
        """Set papers in each subject of a term, among them an examination; `more` are categories of some subjects."""
        random = self.random
        for subject in of.subjects:
            drawn = 0 if of.plain else random.randint(1, 3)
            categories = random.choices(("CA1", "CA2", "CA3", "EXAM"), k=drawn)
            categories += [category for category in more if random.random() < 0.5]
            for category in categories:
                self.paper(of, subject, term, category=category)
            self.paper(of, subject, term, category="EXAM", include_in_final=True)

    def paper(self, of: SchoolClass, subject: str, term: str, **fields: Any) -> dict[str, Any]:
        """Set a paper."""
        random = self.random
        number = len(of.papers.setdefault((subject, term), [])) + 1
        drawn: dict[str, Any] = {
            "category": "EXAM",
            "name": f"{subject}, paper {number}",
            "abbreviation": f"P{number}",
            "due_date": f"{of.session[:4]}-1{random.randint(0, 1)}-{random.randint(10, 12)}",
            "total_points": random.choice(POINTS),
            "include_in_final": random.random() < 0.93,
            "publish_scores": random.random() < 0.7,
            "file_name": "paper.xlsx",
        }
        made = self.make.assessment(
            {"id": of.subjects[subject]}, self.terms[of.session, term], **{**drawn, **fields}
        )
        of.papers[subject, term].append(made)
        return made

    def mark(self, of: SchoolClass, term: str, *, blanks: float = 0, subjects: Sequence[str] = ()) -> None:
        """Enter everyone's scores and absences in the papers of a term; `blanks` is the share left blank."""
        for subject in subjects or of.subjects:
            for paper in of.papers[subject, term]:
                few = of.plain or self.random.random() < 0.3
                drawn = [self._drawn(taker, paper, few, blanks) for taker in of.takers[subject]]
                if of.plain:
                    # The first two have the same in all that they take.
                    drawn[1] = drawn[0] and {**drawn[0], "student": of.takers[subject][1]}
                if any(drawn):
                    self.send(
                        "PUT", f"/assessments/{paper['id']}/scores", [score for score in drawn if score]
                    )

    def _drawn(self, student: str, paper: dict[str, Any], few: bool, blanks: float) -> dict[str, Any] | None:
        random, chance = self.random, self.random.random()
        points = float(paper["total_points"])
        brought_in = paper["category"].endswith("_TERM")
        is_excused = student in self.excused
        if chance < (0.7 if brought_in and not is_excused else blanks):
            return None
        if is_excused and not brought_in:
            return {"student": student, "absence": "EXCUSED"}
        if chance > 0.95 and not brought_in:
            return {"student": student, "absence": "ABSENT" if chance > 0.98 else "EXCUSED"}
        share = min(1, max(0, self.ability[student] + random.uniform(-0.25, 0.25)))
        return {"student": student, "score": round(points * (round(share * 4) / 4 if few else share), 2)}

    def say(self, of: SchoolClass, term: str, *, came: bool = True) -> None:
        """Enter comments and traits of some, and how often they `came`."""
        random = self.random
        for arm, batch in of.arms.items():
            some = [student for student in of.students[arm] if random.random() < 0.7]
            comments = [
                {
                    "student": student,
                    **({"times_present": random.randint(80, 110)} if came else {}),
                    "form_teacher_comment": random.choice((*REMARKS, None)),
                    **({"principal_comment": random.choice(REMARKS)} if random.random() < 0.3 else {}),
                }
                for student in some
            ]
            if comments:
                self.send("PUT", "/comments", {"batch": batch, "term": term, "comments": comments})
            metrics = [
                {
                    "student": student,
                    "metric_type": kind,
                    "metric_scores": {name: random.randint(1, 5) for name in random.sample(names, 4)},
                }
                for student in some
                for kind, names in TRAITS.items()
            ]
            if metrics:
                self.send("PUT", f"/metrics?batch={batch}&term={term}", metrics)

    # Handing in and publishing

    def submit(self, of: SchoolClass, term: str, *subjects: str, **fields: Any) -> None:
        """Hand subjects in, or all; the answers are remembered where subjects are named."""
        for subject in subjects or of.subjects:
            self.send(
                "POST",
                f"/cohort-subjects/{of.subjects[subject]}/submission",
                {"term": term, **fields},
                about=f"{term} is handed in {fields.get('blanks', '')}".strip() if subjects else "",
                # Where nothing counts there is nothing to hand in.
                status=None,
            )

    def publish(
        self, of: SchoolClass, term: str, *arms: str, status: int | None = 200, **fields: Any
    ) -> None:
        """Rehearse the publication of arms, and publish them."""
        of_arms = arms or tuple(of.arms)
        body = {"term": term, "batches": [of.arms[arm] for arm in of_arms], **fields}
        what = f"{of.name} {' and '.join(of_arms)} {of.session} {term}"
        self.send("POST", "/publications?dry_run=true", body, about=what, status=status)
        made = self.send("POST", "/publications", body, about=what, status=status)
        for publication in made if isinstance(made, list) else ():
            self.note(publication)

    def note(self, publication: dict[str, Any]) -> None:
        """Note a publication."""
        name = f"{self.labels[publication['batch']]} {publication['term']['term']} v{publication['version']}"
        self.publications.append(self.label(publication, name)["id"])

    def latest(self, of: SchoolClass, arm: str, term: str) -> str:
        """Find the latest publication of an arm in a term."""
        name = f"{self.labels[of.arms[arm]]} {term} v"
        return next(
            publication
            for publication in reversed(self.publications)
            if self.labels[publication].startswith(name)
        )

    def reopen(
        self, of: SchoolClass, arm: str, term: str, *, status: int | None = 200, **fields: Any
    ) -> None:
        """Reopen the latest publication of an arm in a term."""
        body = {"reason": "A paper was found", **fields}
        path = f"/publications/{self.latest(of, arm, term)}/reopening"
        self.send("POST", path, body, about="", status=status)

    def correct(
        self, of: SchoolClass, term: str, subject: str, student: str, share: float, **fields: Any
    ) -> None:
        """Reopen a subject, give a student another score in its examination, and hand it in again."""
        path = f"/cohort-subjects/{of.subjects[subject]}"
        self.send(
            "POST",
            f"{path}/reopening",
            {"term": term, "reason": "A paper was found"},
            about=f"{term} is reopened",
        )
        paper = of.papers[subject, term][-1]
        score = round(float(paper["total_points"]) * share, 2)
        self.send("PUT", f"/assessments/{paper['id']}/scores", [{"student": student, "score": score}])
        self.submit(of, term, subject, **fields)
