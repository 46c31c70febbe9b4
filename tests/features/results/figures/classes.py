"""Classes made at random, and stored in a school as they are: with all that a class of a real school has, and more."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from random import Random
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Connection

from tests.features.results.figures.oracle import BROUGHT_IN, OF_A_TERM, TERMS, Paper, Rules, SampleClass
from tests.features.results.stored_settings import store_settings

WAEC = (
    (75, "A1", "Excellent"), (70, "B2", "Very Good"), (65, "B3", "Good"), (60, "C4", "Credit"), (55, "C5", "Credit"),
    (50, "C6", "Credit"), (45, "D7", "Pass"), (40, "E8", "Pass"), (0, "F9", "Fail"),
)  # fmt: skip
POINTS = ("3", "8", "10", "12.5", "15", "16", "20", "30", "40", "60", "100")
LEVEL = "Junior Secondary"
MOMENT = "2025-09-08T08:00:00Z"


@dataclass
class Stay:
    """A student in a batch of the cohort: there now, gone, or withdrawn."""

    student: str
    batch: str
    gone: bool = False
    withdrawn: bool = False


@dataclass
class RandomClass:
    """A class, drawn by a number; `sample` is the part that counts, all else is there to be left out."""

    number: int
    people: list[str]
    random: Random = field(init=False)
    sample: SampleClass = field(init=False)
    stays: list[Stay] = field(init=False)
    deleted: set[str] = field(init=False, default_factory=set)
    stored_settings: dict[str, Any] | None = field(init=False, default=None)
    own_bands: bool = field(init=False)
    terms: dict[str, str] = field(init=False)
    electives: set[str] = field(init=False)

    def __post_init__(self) -> None:
        self.random = random = Random(self.number)
        self.cohort, self.session, self.classroom = self.uuid(), self.uuid(), self.uuid()
        self.terms = {term: self.uuid() for term in TERMS}
        self.batches = [self.cohort] if random.random() < 0.5 else [self.cohort, self.uuid()]
        self.own_bands = random.random() < 0.3
        self.odd = random.choice((0.0, 0.0, 0.02))  # how often something is blank
        self.few_values = random.random() < 0.4  # so that many are tied

        # Most are small, and some are large: the same rules hold in both.
        number = random.randint(2, 45 if random.random() < 0.2 else 14)
        self.stays = [
            Stay(student, random.choice(self.batches), random.random() < 0.04, random.random() < 0.04)
            for student in self.people[:number]
        ]
        base_of = {
            self.uuid(): self.uuid() for _ in range(random.randint(1, 14 if random.random() < 0.2 else 6))
        }
        self.electives = {subject for subject in base_of if random.random() < 0.3}
        taken = {
            (stay.student, subject)
            for stay in self.stays
            for subject in base_of
            if subject not in self.electives or random.random() < 0.6
        }
        self.late = {pair for pair in sorted(taken) if random.random() < 0.02}
        batch_of = {stay.student: stay.batch for stay in self.stays if not stay.gone and not stay.withdrawn}
        self.sample = SampleClass(self._rules(), batch_of, base_of, taken, [], {}, {})

    def uuid(self) -> str:
        """An id that the number of the class decides."""
        return str(UUID(int=self.random.getrandbits(128), version=4))

    def _rules(self) -> Rules:
        random = self.random
        bands = WAEC
        if self.own_bands:
            lowest = sorted(random.sample(range(5, 195), random.randint(0, 6)), reverse=True)
            bands = tuple((Decimal(limit) / 2, f"G{limit}", f"Remark {limit}") for limit in lowest)
        bands = tuple((Decimal(lowest), letter, remark) for lowest, letter, remark in bands)
        if random.random() < 0.25:
            return Rules(bands=bands)
        of_level, of_all = self._weights(), self._weights()
        has_level, has_all = random.random() < 0.5, random.random() < 0.7
        weighs = of_level if has_level else of_all if has_all else {}
        rules = Rules(
            weighting=random.choice(("POINTS", "CATEGORIES")),
            weights=weighs,
            places=random.randint(0, 2),
            pass_mark=Decimal(random.choice(("0", "40", "45.5", "50", "100"))),
            minimum_subjects=random.choice((1, 1, 2, 5)),
            minimum_terms=random.choice((1, 1, 2, 3)),
            rank_by=random.choice(("AVERAGE", "TOTAL")),
            percent_from=random.choice(("EXACT", "MARKS")),
            term_weights=random.choice(
                (
                    (Decimal(1),) * 3,
                    (Decimal(15), Decimal(25), Decimal(60)),
                    (Decimal(0), Decimal(0), Decimal("0.5")),
                )
            ),
            bands=bands,
        )
        listed = (
            [("SSS", {"EXAM": Decimal(100)})] + [(LEVEL, of_level)] * has_level + [(None, of_all)] * has_all
        )
        first, second, third = rules.term_weights
        self.stored_settings = {
            "weighting": rules.weighting,
            "weights": [
                {"level": level, "category": category, "weight": float(weight)}
                for level, weights in listed
                for category, weight in weights.items()
            ],
            "percent_places": rules.places,
            "pass_mark": rules.pass_mark,
            "minimum_subjects": rules.minimum_subjects,
            "minimum_terms": rules.minimum_terms,
            "rank_by": rules.rank_by,
            "percent_from": rules.percent_from,
            "first_term_weight": first,
            "second_term_weight": second,
            "third_term_weight": third,
        }
        return rules

    def _weights(self) -> dict[str, Decimal]:
        """Weights of some categories, 100 in all, one of them perhaps 0."""
        chosen = self.random.sample(OF_A_TERM, self.random.randint(1, 4))
        weights = dict(
            zip(
                chosen,
                map(Decimal, self.random.choice((("12.5",) * 4, ("0", "10", "20.25", "33")))),
                strict=False,
            )
        )
        weights[chosen[0]] = 100 - sum(weights[category] for category in chosen[1:])
        return weights

    def draw(
        self, term: str
    ) -> tuple[list[Paper], dict[tuple[str, str], Decimal], dict[tuple[str, str], str]]:
        """Draw the papers of a term, with scores and absences of everyone; the papers are added to the class."""
        random = self.random
        papers = []
        for subject in self.sample.base_of:
            categories = random.choices(OF_A_TERM, k=random.randint(1, 6))
            if random.random() < 0.15:
                categories += random.choices(tuple(BROUGHT_IN), k=random.randint(1, 2))
            for category in categories:
                points = Decimal(random.choice(POINTS))
                papers.append(Paper(self.uuid(), subject, term, category, points, random.random() > 0.05))
        self.deleted |= {paper.id for paper in papers if random.random() < 0.03}
        scores, absences = {}, {}
        for paper in papers:
            brought = paper.category in BROUGHT_IN
            for stay in self.stays:
                takes = (stay.student, paper.subject) in self.sample.taken
                chance = random.random()
                if chance < (0.8 if brought else self.odd) or (not takes and chance < 0.9):
                    continue
                late = (stay.student, paper.subject) in self.late  # has nothing of the subject
                if not brought and (late or chance > 0.97):
                    absences[paper.id, stay.student] = "EXCUSED" if late or chance > 0.985 else "ABSENT"
                else:
                    scores[paper.id, stay.student] = self._score(paper.points)
        counting = [paper for paper in papers if paper.id not in self.deleted]
        self.sample.papers += counting
        self.sample.scores |= scores
        self.sample.absences |= absences
        return papers, scores, absences

    def _score(self, points: Decimal) -> Decimal:
        if self.few_values:
            return (points * self.random.choice((0, 2, 4))) / 4 // Decimal("0.25") * Decimal("0.25")
        return (Decimal(self.random.randint(0, int(points * 100)))) / 100

    def move(self) -> list[Stay]:
        """Let some change to another batch; gives those who did."""
        moved = [stay for stay in self.stays if self.random.random() < 0.1]
        for stay in moved:
            stay.batch = self.random.choice(self.batches)
            if stay.student in self.sample.batch_of:
                self.sample.batch_of[stay.student] = stay.batch
        return moved

    def drop(self) -> set[tuple[str, str]]:
        """Let some drop an elective; gives the students with the subjects that they dropped."""
        dropped = {
            pair
            for pair in sorted(self.sample.taken)
            if pair[1] in self.electives and self.random.random() < 0.1
        }
        self.sample.taken -= dropped
        return dropped


class Store:
    """Stores classes in the tables of a school, each table in one statement."""

    def __init__(self, connection: Connection) -> None:
        self.execute = connection.exec_driver_sql

    def rows(self, table: str, **columns: tuple[str, list[Any]]) -> None:
        """Insert rows: of each column the type and the values."""
        arrays = ", ".join(f"%({name})s::{kind}[]" for name, (kind, _) in columns.items())
        names = ", ".join(columns)
        values = {name: values for name, (_, values) in columns.items()}
        self.execute(f"INSERT INTO {table} ({names}) SELECT * FROM unnest({arrays})", values)

    def class_(self, drawn: RandomClass) -> None:
        """Store a class without papers."""
        sample = drawn.sample
        self.rows(
            "classrooms",
            id=("uuid", [drawn.classroom]),
            name=("text", [drawn.classroom]),
            level=("text", [LEVEL]),
        )
        self.rows(
            "sessions", id=("uuid", [drawn.session]), name=("text", [drawn.session]),
            start_date=("date", ["2025-09-08"]), end_date=("date", ["2026-07-24"]), current=("bool", [False]),
        )  # fmt: skip
        self.rows(
            "terms", id=("uuid", [*drawn.terms.values()]), session_id=("uuid", [drawn.session] * 3),
            term=("text", [*drawn.terms]), display_name=("text", [*drawn.terms]),
        )  # fmt: skip
        self.rows(
            "cohorts", id=("uuid", [drawn.cohort]), classroom_id=("uuid", [drawn.classroom]),
            session_id=("uuid", [drawn.session]),
        )  # fmt: skip
        several = len(drawn.batches)
        self.rows(
            "batches", id=("uuid", drawn.batches), cohort_id=("uuid", [drawn.cohort] * several),
            number=("int", [10**6 + number for number in range(several)]), name=("text", ["A", "B"][:several]),
        )  # fmt: skip
        number = len(drawn.stays)
        self.rows(
            "enrollments", id=("uuid", [drawn.uuid() for _ in drawn.stays]),
            student_id=("uuid", [stay.student for stay in drawn.stays]),
            batch_id=("uuid", [stay.batch for stay in drawn.stays]), cohort_id=("uuid", [drawn.cohort] * number),
            session_id=("uuid", [drawn.session] * number), started_at=("timestamptz", [MOMENT] * number),
            ended_at=("timestamptz", [MOMENT if stay.gone else None for stay in drawn.stays]),
        )  # fmt: skip
        withdrawn = [stay.student for stay in drawn.stays if stay.withdrawn]
        self.execute("UPDATE students SET status = 'WITHDRAWN' WHERE id = ANY(%s::uuid[])", (withdrawn,))
        bases = [*sample.base_of.values()]
        self.rows("subjects", id=("uuid", bases), name=("text", bases), code=("text", bases))
        subjects = [*sample.base_of]
        self.rows(
            "cohort_subjects", id=("uuid", subjects), cohort_id=("uuid", [drawn.cohort] * len(subjects)),
            subject_id=("uuid", bases), elective=("bool", [subject in drawn.electives for subject in subjects]),
        )  # fmt: skip
        taken = sorted(sample.taken)
        self.rows(
            "subject_enrollments", student_id=("uuid", [student for student, _ in taken]),
            cohort_subject_id=("uuid", [subject for _, subject in taken]),
            created_at=("timestamptz", [MOMENT] * len(taken)),
        )  # fmt: skip
        if drawn.stored_settings is not None:
            store_settings(**drawn.stored_settings)
        if drawn.own_bands:
            self.execute("DELETE FROM grade_configurations")
            bands = sample.rules.bands
            self.rows(
                "grade_configurations", id=("uuid", [drawn.uuid() for _ in bands]),
                lower_threshold=("numeric", [band[0] for band in bands]),
                upper_threshold=("numeric", [band[0] for band in bands]),
                letter_grade=("text", [band[1] for band in bands]), remarks=("text", [band[2] for band in bands]),
            )  # fmt: skip

    def papers(
        self,
        drawn: RandomClass,
        papers: list[Paper],
        scores: dict[tuple[str, str], Decimal],
        absences: dict[tuple[str, str], str],
    ) -> None:
        """Store the papers of a term, with scores and absences."""
        number = len(papers)
        texts = {
            name: ("text", ["T"] * number) for name in ("name", "abbreviation", "description", "file_name")
        }
        self.rows(
            "assessments", id=("uuid", [paper.id for paper in papers]),
            cohort_subject_id=("uuid", [paper.subject for paper in papers]), **texts,
            cohort_id=("uuid", [drawn.cohort] * number), session_id=("uuid", [drawn.session] * number),
            term_id=("uuid", [drawn.terms[paper.term] for paper in papers]), due_date=("date", ["2025-10-17"] * number),
            total_points=("numeric", [paper.points for paper in papers]),
            category=("text", [paper.category for paper in papers]),
            include_in_final=("bool", [paper.counts for paper in papers]), publish_scores=("bool", [True] * number),
            created_at=("timestamptz", [MOMENT] * number),
            deleted_at=("timestamptz", [MOMENT if paper.id in drawn.deleted else None for paper in papers]),
        )  # fmt: skip
        entries = len(scores)
        self.rows(
            "gradebook_entries", id=("uuid", [drawn.uuid() for _ in scores]),
            assessment_id=("uuid", [paper for paper, _ in scores]),
            student_id=("uuid", [student for _, student in scores]),
            batch_id=("uuid", [drawn.cohort] * entries), score=("numeric", [*scores.values()]),
            created_at=("timestamptz", [MOMENT] * entries), updated_at=("timestamptz", [MOMENT] * entries),
        )  # fmt: skip
        self.rows(
            "absences", assessment_id=("uuid", [paper for paper, _ in absences]),
            student_id=("uuid", [student for _, student in absences]), status=("text", [*absences.values()]),
            created_at=("timestamptz", [MOMENT] * len(absences)),
        )  # fmt: skip

    def moves(self, moved: list[Stay], dropped: set[tuple[str, str]]) -> None:
        """Store that some have changed to another batch, and dropped subjects."""
        for stay in moved:
            self.execute(
                "UPDATE enrollments SET batch_id = %s::uuid WHERE student_id = %s::uuid",
                (stay.batch, stay.student),
            )
        for student, subject in dropped:
            self.execute(
                "DELETE FROM subject_enrollments WHERE student_id = %s::uuid AND cohort_subject_id = %s::uuid",
                (student, subject),
            )

    def publication(
        self, *, batch: str, cohort: str, session: str, term: str, state: str, cards: dict[str, Any]
    ) -> None:
        """Store a publication of a batch's term, with these cards by student, as they are written."""
        publication, number = str(uuid4()), len(cards)
        reopened = [None if state == "PUBLISHED" else "somebody"]
        self.rows(
            "publications", id=("uuid", [publication]), batch_id=("uuid", [batch]), cohort_id=("uuid", [cohort]),
            session_id=("uuid", [session]), term_id=("uuid", [term]), version=("int", [1]), state=("text", [state]),
            rules=("jsonb", ['{"pass_mark": 40, "percent_places": 2}']), published_at=("timestamptz", [MOMENT]),
            published_by=("text", ["somebody"]), published_by_name=("text", ["somebody"]),
            reopened_at=("timestamptz", [MOMENT if reopened[0] else None]), reopened_by=("text", reopened),
            reopened_by_name=("text", reopened), reason=("text", reopened),
        )  # fmt: skip
        # Two statements: Citus takes no function of a column in the second.
        subjects = self.execute(
            "SELECT jsonb_build_object('subjects', jsonb_object_agg(id, jsonb_build_object('base', subject_id,"
            " 'elective', elective)))::text FROM cohort_subjects WHERE cohort_id = %s::uuid",
            (cohort,),
        ).scalar_one()
        self.execute(
            "UPDATE publications SET rules = rules || %s::jsonb WHERE id = %s::uuid", (subjects, publication)
        )
        self.rows(
            "report_cards", id=("uuid", [str(uuid4()) for _ in cards]),
            publication_id=("uuid", [publication] * number), student_id=("uuid", [*cards]),
            code=("uuid", [str(uuid4()) for _ in cards]), changed=("bool", [False] * number),
            class_figures_changed=("bool", [False] * number), term_id=("uuid", [term] * number),
            in_force=("bool", [state in {"PUBLISHED", "REOPENED"}] * number),
            card=("jsonb", [*cards.values()]),
        )  # fmt: skip
        self.execute("UPDATE report_cards SET average = (card ->> 'average')::numeric")
