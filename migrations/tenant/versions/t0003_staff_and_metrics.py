"""Settings, employees, form teachers, contacts, graduates and metrics.

A school that is there already gets the default settings and counters that a new one is seeded with. Where the
tables are created for a new school there are no counters yet, and the seeding writes them.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "t0003"
down_revision = "t0002"
branch_labels = None
depends_on = None

_DEPARTMENTS = (
    "Administration",
    "Bursary",
    "Commercial",
    "Humanities",
    "Languages",
    "Library",
    "Mathematics",
    "Sciences",
    "Vocational and Technical",
)
_EMPLOYEE_CATEGORIES = (
    "Contract",
    "Non-teaching",
    "Teaching",
)
_POSITIONS = (
    "Principal",
    "Vice Principal (Academic)",
    "Vice Principal (Administration)",
    "Head of Department",
    "Teacher",
    "Guidance Counsellor",
    "Bursar",
    "Registrar",
    "Librarian",
    "Laboratory Technician",
    "School Nurse",
    "Security Officer",
)
_GRADE_BANDS = (
    (75, 100, "A1", "Excellent"),
    (70, 74, "B2", "Very Good"),
    (65, 69, "B3", "Good"),
    (60, 64, "C4", "Credit"),
    (55, 59, "C5", "Credit"),
    (50, 54, "C6", "Credit"),
    (45, 49, "D7", "Pass"),
    (40, 44, "E8", "Pass"),
    (0, 39, "F9", "Fail"),
)
_TRAITS = (
    ("AFFECTIVE", 1, "punctuality"),
    ("AFFECTIVE", 2, "neatness"),
    ("AFFECTIVE", 3, "honesty"),
    ("AFFECTIVE", 4, "reliability"),
    ("AFFECTIVE", 5, "relationship with others"),
    ("AFFECTIVE", 6, "politeness"),
    ("AFFECTIVE", 7, "alertness"),
    ("AFFECTIVE", 8, "self control"),
    ("AFFECTIVE", 9, "attentiveness"),
    ("AFFECTIVE", 10, "perseverance"),
    ("PSYCHOMOTOR", 1, "handwriting"),
    ("PSYCHOMOTOR", 2, "games and sports"),
    ("PSYCHOMOTOR", 3, "drawing and arts"),
    ("PSYCHOMOTOR", 4, "painting"),
    ("PSYCHOMOTOR", 5, "construction"),
    ("PSYCHOMOTOR", 6, "musical skills"),
    ("PSYCHOMOTOR", 7, "flexibility"),
    ("PSYCHOMOTOR", 8, "handling tools"),
)
_COUNTERS = (("graduates", 0), ("affective traits", 10), ("psychomotor traits", 8))


def upgrade() -> None:
    """Create the tables, and fill those of a school that is there already."""
    op.create_table(
        "departments",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.String(length=120), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_departments")),
        sa.UniqueConstraint("name", name=op.f("uq_departments_name")),
    )
    op.create_table(
        "employee_categories",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.String(length=120), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_employee_categories")),
        sa.UniqueConstraint("name", name=op.f("uq_employee_categories_name")),
    )
    op.create_table(
        "positions",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.String(length=120), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_positions")),
        sa.UniqueConstraint("name", name=op.f("uq_positions_name")),
    )
    op.create_table(
        "grade_configurations",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("lower_threshold", sa.Numeric(precision=5, scale=2), nullable=False),
        sa.Column("upper_threshold", sa.Numeric(precision=5, scale=2), nullable=False),
        sa.Column("letter_grade", sa.String(length=120), nullable=False),
        sa.Column("remarks", sa.String(length=2000), nullable=False),
        postgresql.ExcludeConstraint(
            (sa.text("numrange(lower_threshold, upper_threshold, '[]')"), "&&"),
            using="gist",
            name="ex_grade_configurations_thresholds",
        ),
        sa.CheckConstraint(
            "0 <= lower_threshold AND lower_threshold <= upper_threshold AND upper_threshold <= 100",
            name=op.f("ck_grade_configurations_thresholds"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_grade_configurations")),
    )
    op.create_table(
        "contacts",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("owner_id", sa.Uuid(), nullable=False),
        sa.Column("email_address", sa.String(length=254), nullable=False),
        sa.Column("phone_number", sa.String(length=120), nullable=False),
        sa.Column("physical_address", sa.String(length=2000), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["owner_id"], ["users.id"], name=op.f("fk_contacts_owner_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_contacts")),
        sa.UniqueConstraint("owner_id", "email_address", name=op.f("uq_contacts_owner_id_email_address")),
    )
    op.create_table(
        "employees",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("contact_id", sa.Uuid(), nullable=False),
        sa.Column("department_id", sa.Uuid(), nullable=False),
        sa.Column("category_id", sa.Uuid(), nullable=False),
        sa.Column("position_id", sa.Uuid(), nullable=False),
        sa.Column("middle_name", sa.String(length=120), nullable=False),
        sa.Column("title", sa.String(length=120), nullable=False),
        sa.Column("dob", sa.Date(), nullable=False),
        sa.Column("join_date", sa.Date(), nullable=False),
        sa.Column("marital_status", sa.String(length=120), nullable=False),
        sa.Column("blood_group", sa.String(length=120), nullable=False),
        sa.Column("lga_id", sa.Uuid(), nullable=False),
        sa.Column("state_id", sa.Uuid(), nullable=False),
        sa.Column("nationality_id", sa.Uuid(), nullable=False),
        sa.Column("religion", sa.String(length=120), nullable=False),
        sa.Column("status", sa.String(length=120), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("deleted_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["category_id"], ["employee_categories.id"], name=op.f("fk_employees_category_id")
        ),
        sa.ForeignKeyConstraint(["contact_id"], ["contacts.id"], name=op.f("fk_employees_contact_id")),
        sa.ForeignKeyConstraint(
            ["department_id"], ["departments.id"], name=op.f("fk_employees_department_id")
        ),
        sa.ForeignKeyConstraint(["position_id"], ["positions.id"], name=op.f("fk_employees_position_id")),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_employees_user_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_employees")),
        sa.UniqueConstraint("contact_id", name=op.f("uq_employees_contact_id")),
        sa.UniqueConstraint("user_id", name=op.f("uq_employees_user_id")),
    )
    op.create_index(op.f("ix_employees_category_id"), "employees", ["category_id"], unique=False)
    op.create_index(op.f("ix_employees_department_id"), "employees", ["department_id"], unique=False)
    op.create_index(op.f("ix_employees_position_id"), "employees", ["position_id"], unique=False)
    op.create_table(
        "bank_accounts",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("employee_id", sa.Uuid(), nullable=False),
        sa.Column("bank_name", sa.String(length=120), nullable=False),
        sa.Column("account_name", sa.String(length=120), nullable=False),
        sa.Column("account_number", sa.String(length=120), nullable=False),
        sa.Column("bank_sort_code", sa.String(length=120), nullable=False),
        sa.Column("account_type", sa.String(length=120), nullable=False),
        sa.Column("employee_no", sa.String(length=120), nullable=False),
        sa.Column("employee_ref", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["employee_id"], ["employees.id"], name=op.f("fk_bank_accounts_employee_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_bank_accounts")),
        sa.UniqueConstraint("employee_id", name=op.f("uq_bank_accounts_employee_id")),
    )
    op.create_table(
        "next_of_kin",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("employee_id", sa.Uuid(), nullable=False),
        sa.Column("full_name", sa.String(length=120), nullable=False),
        sa.Column("relationship", sa.String(length=120), nullable=False),
        sa.Column("phone_number", sa.String(length=120), nullable=False),
        sa.Column("physical_address", sa.String(length=2000), nullable=False),
        sa.Column("employee_ref", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["employee_id"], ["employees.id"], name=op.f("fk_next_of_kin_employee_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_next_of_kin")),
        sa.UniqueConstraint("employee_id", name=op.f("uq_next_of_kin_employee_id")),
    )
    op.create_table(
        "form_teachers",
        sa.Column("batch_id", sa.Uuid(), nullable=False),
        sa.Column("employee_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["batch_id"], ["batches.id"], name=op.f("fk_form_teachers_batch_id")),
        sa.ForeignKeyConstraint(["employee_id"], ["employees.id"], name=op.f("fk_form_teachers_employee_id")),
        sa.PrimaryKeyConstraint("batch_id", "employee_id", name=op.f("pk_form_teachers")),
    )
    op.create_index(op.f("ix_form_teachers_employee_id"), "form_teachers", ["employee_id"], unique=False)
    op.create_table(
        "graduates",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("student_id", sa.Uuid(), nullable=False),
        sa.Column("graduation_class", sa.String(length=241), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["student_id"], ["students.id"], name=op.f("fk_graduates_student_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_graduates")),
        sa.UniqueConstraint("number", name=op.f("uq_graduates_number")),
        sa.UniqueConstraint("student_id", name=op.f("uq_graduates_student_id")),
    )
    op.create_table(
        "metric_definitions",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.String(length=120), nullable=False),
        sa.Column("metric_type", sa.String(length=20), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.CheckConstraint(
            "metric_type IN ('PSYCHOMOTOR', 'AFFECTIVE')", name=op.f("ck_metric_definitions_metric_type")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_metric_definitions")),
        sa.UniqueConstraint(
            "metric_type", "position", name=op.f("uq_metric_definitions_metric_type_position")
        ),
        sa.UniqueConstraint("name", "metric_type", name=op.f("uq_metric_definitions_name_metric_type")),
    )
    op.create_table(
        "metrics",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("student_id", sa.Uuid(), nullable=False),
        sa.Column("batch_id", sa.Uuid(), nullable=False),
        sa.Column("cohort_id", sa.Uuid(), nullable=False),
        sa.Column("session_id", sa.Uuid(), nullable=False),
        sa.Column("term_id", sa.Uuid(), nullable=False),
        sa.Column("metric_type", sa.String(length=20), nullable=False),
        sa.Column("sheet", sa.String(length=255), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "metric_type IN ('PSYCHOMOTOR', 'AFFECTIVE')", name=op.f("ck_metrics_metric_type")
        ),
        sa.ForeignKeyConstraint(
            ["batch_id", "cohort_id"],
            ["batches.id", "batches.cohort_id"],
            name=op.f("fk_metrics_batch_id_cohort_id"),
        ),
        sa.ForeignKeyConstraint(
            ["cohort_id", "session_id"],
            ["cohorts.id", "cohorts.session_id"],
            name=op.f("fk_metrics_cohort_id_session_id"),
        ),
        sa.ForeignKeyConstraint(["student_id"], ["students.id"], name=op.f("fk_metrics_student_id")),
        sa.ForeignKeyConstraint(
            ["term_id", "session_id"],
            ["terms.id", "terms.session_id"],
            name=op.f("fk_metrics_term_id_session_id"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_metrics")),
        sa.UniqueConstraint(
            "student_id", "term_id", "metric_type", name=op.f("uq_metrics_student_id_term_id_metric_type")
        ),
    )
    op.create_index(op.f("ix_metrics_batch_id_cohort_id"), "metrics", ["batch_id", "cohort_id"], unique=False)
    op.create_index(
        op.f("ix_metrics_cohort_id_session_id"), "metrics", ["cohort_id", "session_id"], unique=False
    )
    op.create_index(op.f("ix_metrics_term_id_session_id"), "metrics", ["term_id", "session_id"], unique=False)
    op.create_table(
        "metric_scores",
        sa.Column("metric_id", sa.Uuid(), nullable=False),
        sa.Column("definition_id", sa.Uuid(), nullable=False),
        sa.Column("score", sa.SmallInteger(), nullable=False),
        sa.CheckConstraint("score BETWEEN 1 AND 5", name=op.f("ck_metric_scores_score")),
        sa.ForeignKeyConstraint(
            ["definition_id"], ["metric_definitions.id"], name=op.f("fk_metric_scores_definition_id")
        ),
        sa.ForeignKeyConstraint(["metric_id"], ["metrics.id"], name=op.f("fk_metric_scores_metric_id")),
        sa.PrimaryKeyConstraint("metric_id", "definition_id", name=op.f("pk_metric_scores")),
    )
    op.create_index(op.f("ix_metric_scores_definition_id"), "metric_scores", ["definition_id"], unique=False)
    _fill("counters", ("name", "value"), _COUNTERS)
    _fill("departments", ("name",), [(name,) for name in _DEPARTMENTS], {"created_at": "now()"})
    _fill("employee_categories", ("name",), [(name,) for name in _EMPLOYEE_CATEGORIES])
    _fill("positions", ("name",), [(name,) for name in _POSITIONS])
    _fill(
        "grade_configurations",
        ("lower_threshold", "upper_threshold", "letter_grade", "remarks"),
        _GRADE_BANDS,
    )
    _fill("metric_definitions", ("metric_type", "position", "name"), _TRAITS)


def _fill(
    table: str,
    columns: tuple[str, ...],
    rows: list[tuple[object, ...]] | tuple[tuple[object, ...], ...],
    computed: dict[str, str] | None = None,
) -> None:
    computed = {"id": "gen_random_uuid()", **(computed or {})}
    names = ", ".join([*computed, *columns])
    values = ",\n    ".join(
        "(" + ", ".join(f"'{value}'" if isinstance(value, str) else str(value) for value in row) + ")"
        for row in rows
    )
    op.execute(
        f"INSERT INTO {table} ({names})\n"
        f"SELECT {', '.join(computed.values())}, {', '.join(columns)}\n"
        f"FROM (VALUES\n    {values}\n) AS defaults ({', '.join(columns)})\n"
        "WHERE EXISTS (SELECT FROM counters WHERE name = 'students')"
    )
