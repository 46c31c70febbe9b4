"""Verifying an installation: a whole one is good, and each damage by a recovery or a hand is said."""

from __future__ import annotations

import shutil
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import SimpleNamespace

import pytest
from sqlalchemy import Connection

from school_service.tenancy import import_models
from tenants.backups.backup_all import back_up_all
from tenants.backups.encryption import new_identity
from tenants.connections.engines import admin_engine, execute_script
from tenants.migrations.migrate import migrate_schools
from tenants.migrations.migration_sql import head
from tenants.provisioning.create import create_school
from tenants.registry.installation import install
from tenants.tenancy import Tenancy
from tenants.verification import verify
from tests.cli.program import ROOT
from tests.features.results.golden.released import COMMITS
from tests.tenants.installations import ADMINISTRATOR, execute, installation

SCORES = 5


@pytest.fixture(scope="module")
def tenancy(server):
    """An installation whose operator is no superuser, as on a server of its own, and whose database is theirs."""
    with installation(server, superuser=False, installed=False) as tenancy:
        database, operator = tenancy.admin_url.database, tenancy.admin_url.username
        execute(server, f'ALTER DATABASE "{database}" OWNER TO "{operator}"')
        install(tenancy)
        yield tenancy
        execute(server, f'ALTER DATABASE "{database}" OWNER TO CURRENT_USER')


@pytest.fixture(scope="module")
def superuser(server, tenancy):
    """The superuser's address of the installation's database."""
    return server.set(database=tenancy.admin_url.database)


@pytest.fixture(scope="module")
def school(tenancy, superuser):
    """A school with scores."""
    school = create_school(tenancy, name="Ada College", administrator=ADMINISTRATOR)
    execute(superuser, f"SET session_replication_role TO replica; {scores(school, SCORES)}")
    return school


def scores(school, number):
    """Write the statement for scores that no assessment and student have: of these only the number is looked at."""
    return f"""
        INSERT INTO "{school.schema}".gradebook_entries
            (id, assessment_id, student_id, batch_id, score, created_at, updated_at)
        SELECT gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 1, now(), now()
        FROM generate_series(1, {number})
    """


@pytest.fixture(scope="module")
def backups(tenancy, school, tmp_path_factory):
    """A folder with two backups of the school: the entry of the first in the audit log is in the second."""
    folder = tmp_path_factory.mktemp("backups")
    assert [len(back_up_all(tenancy, folder).made) for _ in range(2)] == [1, 1]
    return folder


@dataclass(frozen=True)
class Damaged:
    """The installation in one transaction of a superuser, which is never committed."""

    tenancy: Tenancy
    connection: Connection

    @contextmanager
    def by(self, damage):
        """Do damage for the length of the block; yields the operator's tenancy, on the same connection."""
        with self._undone():
            execute_script(self.connection, damage)
            operator = self.tenancy.admin_url.username
            execute_script(self.connection, f'SET LOCAL SESSION AUTHORIZATION "{operator}"')
            damaged = replace(self.tenancy)
            vars(damaged)["admin"] = SimpleNamespace(connect=self._undone, url=self.tenancy.admin.url)
            yield damaged

    @contextmanager
    def _undone(self):
        savepoint = self.connection.begin_nested()
        try:
            yield self.connection
        finally:
            savepoint.rollback()


@pytest.fixture(scope="module")
def damaged(tenancy, superuser, school, backups):
    # A new school's schema is made once in a process, on a connection of its own.
    assert verify(tenancy, folder=backups).is_good
    engine = admin_engine(superuser)
    with engine.connect() as connection:
        yield Damaged(tenancy, connection)
        connection.rollback()
    engine.dispose()


def faults(tenancy, **options):
    report = verify(tenancy, **options)
    return [*report.faults, *(fault for school in report.schools for fault in school.faults)]


def test_a_whole_installation_is_good(tenancy, school, backups):
    report = verify(tenancy, folder=backups)

    record = report.as_record()
    assert (record["good"], record["faults"], record["notes"]) == (True, [], [])
    (details,) = record["schools"]
    assert (details["id"], details["revision"], details["state"]) == (
        str(school.id),
        head(tenancy.history),
        "good",
    )
    assert details["rows"] > 10
    assert details["backup"].endswith(".zip")
    # The entry of the backup itself.
    assert details["notes"] == ["rows since its newest backup: audit_entries +1"]


# Damages to the school, its role, the login and the owner, and the faults reported.
SCHEMA_DAMAGE = [
    ("DROP TABLE {s}.marks", "table marks is missing"),
    ("ALTER TABLE {s}.marks RENAME TO notes", "table notes should not be there"),
    ("ALTER TABLE {s}.users DROP COLUMN photo", "column users.photo is missing"),
    ("ALTER TABLE {s}.users ADD COLUMN shoe_size int", "column users.shoe_size should not be there: integer"),
    (
        "ALTER TABLE {s}.classrooms ALTER COLUMN level TYPE text",
        "column classrooms.level: text, and should be character varying(120)",
    ),
    (
        'ALTER TABLE {s}.classrooms ALTER COLUMN level TYPE varchar(120) COLLATE "C"',
        'collation of classrooms.level should not be there: "C"',
    ),
    (
        "ALTER TABLE {s}.classrooms ALTER COLUMN level DROP NOT NULL",
        "NOT NULL of classrooms.level is missing",
    ),
    (
        "ALTER TABLE {s}.classrooms ALTER COLUMN level SET DEFAULT 'none'",
        "default of classrooms.level should not be there: 'none'",
    ),
    (
        "ALTER TABLE {s}.terms DROP CONSTRAINT fk_terms_session_id",
        "constraint terms.fk_terms_session_id is missing",
    ),
    (
        "ALTER TABLE {s}.terms DROP CONSTRAINT fk_terms_session_id; ALTER TABLE {s}.terms ADD CONSTRAINT "
        "fk_terms_session_id FOREIGN KEY (session_id) REFERENCES {s}.sessions NOT VALID",
        "constraint terms.fk_terms_session_id: FOREIGN KEY (session_id) REFERENCES sessions(id) NOT VALID, and should",
    ),
    (
        "ALTER TABLE {s}.students DROP CONSTRAINT ck_students_status",
        "constraint students.ck_students_status is missing",
    ),
    (
        "ALTER TABLE {s}.students DROP CONSTRAINT uq_students_number",
        "index students.uq_students_number is missing",
    ),
    (
        "ALTER TABLE {s}.classrooms ADD CONSTRAINT ck_level CHECK (level <> 'Junior')",
        "constraint classrooms.ck_level should not be there: CHECK",
    ),
    ("DROP INDEX {s}.ix_students_status", "index students.ix_students_status is missing"),
    ("CREATE INDEX extra ON {s}.students (dob)", "index students.extra should not be there"),
    (
        "DROP INDEX {s}.uq_sessions_current; CREATE INDEX uq_sessions_current ON {s}.sessions (current)",
        "index sessions.uq_sessions_current: CREATE INDEX",
    ),
    (
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = '{s}.ix_students_status'::regclass",
        "state of index students.ix_students_status: invalid, and should be valid",
    ),
    ("ALTER TABLE {s}.counters SET UNLOGGED", "storage of counters: unlogged, and should be logged"),
    ("ALTER TABLE {s}.users ENABLE ROW LEVEL SECURITY", "row-level security of users: on, and should be off"),
    (
        "ALTER TABLE {s}.users FORCE ROW LEVEL SECURITY",
        "row-level security of users: off, forced upon the owner",
    ),
    ("CREATE POLICY none ON {s}.users USING (false)", "policy users.none should not be there"),
    (
        "ALTER TABLE {s}.marks DISABLE TRIGGER ALL",
        "disabled trigger marks.fk_marks_register_id, marks.fk_marks_student_id should not be there",
    ),
    (
        "CREATE FUNCTION {s}.spy() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; "
        "CREATE TRIGGER spy AFTER INSERT ON {s}.users EXECUTE FUNCTION {s}.spy()",
        "trigger users.spy should not be there",
    ),
    (
        "CREATE RULE quiet AS ON DELETE TO {s}.users DO INSTEAD NOTHING",
        "rule users.quiet should not be there",
    ),
    (
        "ALTER FUNCTION {s}.caller_state(uuid) RENAME TO other_state",
        "function other_state(uuid) should not be there",
    ),
    (
        "CREATE OR REPLACE FUNCTION {s}.caller_state(caller uuid, OUT permissions text[], OUT name text, "
        "OUT session_number integer, OUT must_change_password boolean) LANGUAGE sql AS "
        "$$ SELECT '{{write:users}}'::text[], 'x', 1, false $$",
        "function caller_state(uuid) is defined otherwise than in a new school",
    ),
    (
        "ALTER FUNCTION {s}.caller_state(uuid) SECURITY DEFINER",
        "function caller_state(uuid) is defined otherwise than",
    ),
    ("CREATE VIEW {s}.seen AS SELECT username FROM {s}.users", "view seen should not be there"),
    ("CREATE SEQUENCE {s}.numbers", "sequence numbers should not be there"),
    ("CREATE TYPE {s}.colour AS ENUM ('red')", "type colour should not be there"),
    ("ALTER TABLE {s}.users REPLICA IDENTITY FULL", "replica identity of users: full, and should be default"),
    (
        "CREATE TABLE {s}.more () INHERITS ({s}.counters); ALTER TABLE {s}.more ADD PRIMARY KEY (id)",
        "table more should not be there",
    ),
    ('ALTER TABLE {s}.users OWNER TO "{login}"', "owner of users: {login}, and should be the owner"),
    ('ALTER SCHEMA {s} OWNER TO "{login}"', "requests can become {login}, which owns the schema"),
    ("ALTER SCHEMA {s} OWNER TO stranger", "stranger owns the schema, not {owner}"),
    ("ALTER SCHEMA {s} RENAME TO elsewhere", "the schema {role} is missing"),
    (
        "UPDATE registry.schools SET revision = 't9999' WHERE id = '{id}'",
        "this program does not know the revision t9999",
    ),
    ("CREATE SCHEMA school_{zeros}", "the schema school_{zeros} is of no school of the registry"),
]
RIGHTS_DAMAGE = [
    (
        'REVOKE INSERT ON {s}.classrooms FROM "{role}"',
        "rights of the role on classrooms: DELETE, SELECT, UPDATE, and should be DELETE, INSERT, SELECT, UPDATE",
    ),
    (
        'GRANT DELETE ON {s}.audit_entries TO "{role}"',
        "rights of the role on audit_entries: DELETE, INSERT, SELECT, and should be INSERT, SELECT",
    ),
    (
        'GRANT UPDATE (at) ON {s}.audit_entries TO "{role}"',
        "rights of the role on audit_entries.at should not be there: UPDATE",
    ),
    (
        'GRANT SELECT ON {s}.users TO "{role}" WITH GRANT OPTION',
        "INSERT, SELECT WITH GRANT OPTION, UPDATE, and",
    ),
    ("GRANT SELECT ON {s}.users TO PUBLIC", "rights of PUBLIC on users should not be there: SELECT"),
    (
        "GRANT SELECT (username) ON {s}.users TO stranger",
        "rights of stranger on users.username should not be there",
    ),
    ("GRANT USAGE ON SCHEMA {s} TO stranger", "rights of stranger on the schema should not be there: USAGE"),
    (
        'GRANT CREATE ON SCHEMA {s} TO "{role}"',
        "rights of the role on the schema: CREATE, USAGE, and should be USAGE",
    ),
    ('REVOKE USAGE ON SCHEMA {s} FROM "{role}"', "rights of the role on the schema is missing"),
    (
        'REVOKE SELECT ON {s}.users FROM "{owner}"',
        "rights of the owner on users: ",
    ),
    (
        "REVOKE EXECUTE ON FUNCTION {s}.caller_state(uuid) FROM PUBLIC",
        "rights of PUBLIC on caller_state(uuid) is missing",
    ),
    (
        'ALTER DEFAULT PRIVILEGES FOR ROLE "{owner}" IN SCHEMA {s} GRANT SELECT ON TABLES TO PUBLIC',
        "default acl for role {owner}",
    ),
    (
        'ALTER DEFAULT PRIVILEGES FOR ROLE "{owner}" GRANT SELECT ON TABLES TO stranger',
        "default privileges of {owner} give rights on all that it makes",
    ),
    (
        "GRANT SELECT ON registry.schools TO PUBLIC",
        "PUBLIC has other rights on the registry than it should have: schools (SELECT, and not none)",
    ),
    (
        'GRANT SELECT (secret_hash) ON registry.clients TO "{login}"',
        "{login} has other rights on the registry than it should have: clients.secret_hash (SELECT, and not none)",
    ),
    (
        'REVOKE SELECT ON registry.schools FROM "{login}"',
        "{login} has other rights on the registry than it should have: schools (none, and not SELECT)",
    ),
    ("GRANT CONNECT ON DATABASE {db} TO PUBLIC", "PUBLIC has CONNECT on the database, and should not"),
    (
        'GRANT TEMPORARY ON DATABASE {db} TO "{login}"',
        "{login} has TEMPORARY on the database, and should not",
    ),
    ('GRANT CREATE ON DATABASE {db} TO "{role}"', "{role} has CREATE on the database, and should not"),
    (
        'REVOKE CONNECT ON DATABASE {db} FROM "{login}"',
        "the login {login} may not connect to the database",
    ),
]
ROLE_DAMAGE = [
    ('ALTER ROLE "{role}" LOGIN', "the role {role} may sign in"),
    ('ALTER ROLE "{role}" SUPERUSER', "the role {role} has SUPERUSER"),
    ('ALTER ROLE "{role}" BYPASSRLS CREATEROLE', "the role {role} has CREATEROLE and BYPASSRLS"),
    ('ALTER ROLE "{role}" INHERIT', "the role {role} has INHERIT"),
    ('ALTER ROLE "{role}" RENAME TO nobody_knows_me', "the role {role} is missing"),
    ('ALTER ROLE "{owner}" LOGIN', "the role {owner} may sign in"),
    ('ALTER ROLE "{owner}" CREATEDB', "the role {owner} has CREATEDB"),
    ('ALTER ROLE "{login}" SUPERUSER', "the login {login} has SUPERUSER"),
    ('ALTER ROLE "{login}" BYPASSRLS', "the login {login} has BYPASSRLS"),
    ('ALTER ROLE "{login}" REPLICATION', "the login {login} has REPLICATION"),
    ('ALTER ROLE "{login}" INHERIT', "the login {login} has INHERIT"),
    ('ALTER ROLE "{login}" NOLOGIN', "the login {login} is missing, or may not sign in"),
    ("ALTER ROLE \"{login}\" VALID UNTIL '2020-01-01'", "the login {login} is missing, or may not sign in"),
    ('GRANT "{role}" TO stranger', "stranger is a member of {role}, and should not be"),
    ('GRANT "{owner}" TO stranger', "stranger is a member of {owner}, and should not be"),
    ('GRANT "{login}" TO stranger', "stranger is a member of {login}, and should not be"),
    ('GRANT "{owner}" TO "{login}"', "{login} is a member of {owner}, and should not be"),
    ('GRANT "{owner}" TO "{role}"', "{role} is a member of {owner}, and should not be"),
    ('GRANT stranger TO "{role}"', "{role} is a member of stranger, and should not be"),
    ('GRANT pg_read_all_data TO "{login}"', "{login} is a member of pg_read_all_data, and should not be"),
    (
        'GRANT pg_read_all_data TO stranger; GRANT stranger TO "{login}"',
        "{login} is a member of pg_read_all_data, and should not be",
    ),
    ('GRANT "{role}" TO "{login}" WITH INHERIT TRUE', "the login {login} is a member of {role} with INHERIT"),
    ('GRANT "{role}" TO "{login}" WITH ADMIN TRUE', "the login {login} is a member of {role} with ADMIN"),
    (
        'REVOKE "{role}" FROM "{login}" GRANTED BY "{operator}"',
        "the login {login} is no member of the role {role}",
    ),
]
ROW_DAMAGE = [
    (
        "DELETE FROM {s}.gradebook_entries WHERE id = (SELECT id FROM {s}.gradebook_entries LIMIT 1)",
        "gradebook_entries has 4 rows, and had 5 in its newest backup: 1 less than the audit log accounts for",
    ),
    ("DELETE FROM {s}.audit_entries", "audit_entries has 0 rows, and had"),
    (
        "SET LOCAL session_replication_role TO replica; DELETE FROM {s}.role_permissions",
        "role_permissions has 0 rows, and had",
    ),
    ("TRUNCATE {s}.school_settings", "school_settings has 0 rows, and had 1 in its newest backup"),
]


# After these, no more is said of the school, or less.
HIDING = ("SCHEMA {s} RENAME", "SCHEMA {s} OWNER", "SET revision", "DROP TABLE {s}.marks", "REVOKE USAGE")
TOGETHER = [pair for pair in SCHEMA_DAMAGE + RIGHTS_DAMAGE if not any(hiding in pair[0] for hiding in HIDING)]
ALONE = [pair for pair in SCHEMA_DAMAGE + RIGHTS_DAMAGE if pair not in TOGETHER] + ROLE_DAMAGE + ROW_DAMAGE
BUNDLES = 18


@pytest.fixture(scope="module")
def names(damaged, school):
    """The names of the school, its role, the login and the owner."""
    return {
        "s": f'"{school.schema}"',
        "role": school.schema,
        "id": school.id,
        "login": damaged.tenancy.placement.login,
        "owner": damaged.tenancy.owner,
        "operator": damaged.tenancy.admin_url.username,
        "db": f'"{damaged.tenancy.admin_url.database}"',
        "zeros": "0" * 32,
    }


@pytest.mark.parametrize(("damage", "said"), ALONE, ids=[damage[:40] for damage, _ in ALONE])
def test_each_damage_is_said(damaged, names, backups, damage, said):
    with damaged.by("CREATE ROLE stranger; " + damage.format_map(names)) as tenancy:
        texts = faults(tenancy, folder=backups)

    assert any(said.format_map(names) in fault for fault in texts), texts
    # Not a list of all that follows from it.
    assert len(texts) <= 10, texts


@pytest.mark.parametrize("bundle", [TOGETHER[number::BUNDLES] for number in range(BUNDLES)])
def test_each_of_several_damages_is_said(damaged, names, backups, bundle):
    """The damages are far from each other; some are said in several sentences."""
    damage = "; ".join(damage.format_map(names) for damage, _ in bundle)
    with damaged.by(f"CREATE ROLE stranger; {damage}") as tenancy:
        sentences = faults(tenancy, folder=backups)

    unsaid = [said for _, said in bundle if not any(said.format_map(names) in fault for fault in sentences)]
    assert unsaid == [], sentences
    assert len(sentences) <= 2 * len(bundle) + 4, sentences


def test_damage_without_bound_is_counted(damaged, school):
    alike = "; ".join(f'ALTER TABLE "{school.schema}".users ADD COLUMN more_{n} int' for n in range(10, 40))
    with damaged.by(alike) as tenancy:
        (said,) = faults(tenancy)
    assert said.endswith("users.more_19 and 20 more should not be there: integer")

    others = "; ".join(f'CREATE INDEX more_{n} ON "{school.schema}".users (photo)' for n in range(30))
    with damaged.by(others) as tenancy:
        texts = faults(tenancy)
    assert len(texts) == 11
    assert texts[-1] == "20 more differences from a new school's schema"


@pytest.mark.parametrize(
    ("change", "noted"),
    [
        (
            "ALTER TABLE {s}.users SET (autovacuum_enabled = false)",
            "options of users: autovacuum_enabled=false",
        ),
        ("CREATE ROLE readers; GRANT readers TO {login}", "is a member of readers"),
        (
            "DELETE FROM {s}.gradebook_entries WHERE id = (SELECT id FROM {s}.gradebook_entries LIMIT 1); "
            "INSERT INTO {s}.audit_entries (id, at, actor, actor_name, action, entity) "
            "VALUES (gen_random_uuid(), now(), 'x', 'x', 'delete', 'gradebook')",
            "rows since its newest backup: audit_entries +2, gradebook_entries -1",
        ),
        (
            "DELETE FROM {s}.role_permissions WHERE role_id = (SELECT role_id FROM {s}.role_permissions LIMIT 1); "
            "INSERT INTO {s}.audit_entries (id, at, actor, actor_name, action, entity) "
            "VALUES (gen_random_uuid(), now(), 'x', 'x', 'update', 'role')",
            "rows since its newest backup: audit_entries +2, role_permissions -",
        ),
    ],
)
def test_a_difference_that_may_be_intended_is_a_note(damaged, school, backups, change, noted):
    change = change.format(s=f'"{school.schema}"', login=f'"{damaged.tenancy.placement.login}"')
    with damaged.by(change) as tenancy:
        report = verify(tenancy, folder=backups)

    assert report.is_good, report.as_record()
    assert any(
        noted in note
        for note in [*report.notes, *(note for school in report.schools for note in school.notes)]
    )


def test_every_table_says_how_its_deletions_are_named(tenancy):
    """The tables left out have rows that expire."""
    assert set(import_models().tables) - set(tenancy.deletions) == {
        "idempotency_keys",
        "invitations",
        "user_sessions",
    }


@pytest.mark.parametrize("release", COMMITS)
def test_a_school_of_an_earlier_release_is_behind_and_then_good(tenancy, tmp_path, release):
    baseline = subprocess.run(
        ["git", "show", f"{COMMITS[release]}:migrations/tenant/baseline.sql"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if baseline.returncode:
        pytest.skip(f"the commit {COMMITS[release]} is not in this clone: git fetch --unshallow brings it")
    history = tmp_path / "tenant"
    shutil.copytree(tenancy.history, history, ignore=shutil.ignore_patterns("__pycache__"))
    (history / "baseline.sql").write_text(baseline.stdout, encoding="utf-8")
    earlier = replace(tenancy, history=history, seed=lambda administrator: ())
    school = create_school(earlier, name="Earlier", administrator=ADMINISTRATOR)

    def faults_and_notes():
        (report,) = [row for row in verify(tenancy).schools if row.school.id == school.id]
        return report.faults, report.notes

    assert faults_and_notes() == ([], [f"it is behind {head()}: run school-service tenants migrate"])
    migrate_schools(tenancy)
    assert faults_and_notes() == ([], [])
    execute(
        tenancy.admin_url,
        f'SET ROLE "{tenancy.owner}"; DROP SCHEMA "{school.schema}" CASCADE; RESET ROLE; '
        f"DROP ROLE \"{school.schema}\"; DELETE FROM registry.schools WHERE id = '{school.id}'",
    )


def test_backups_that_can_not_be_compared_are_said(tenancy, school, backups, tmp_path):
    own = str(school.id)
    lost = "00000000-0000-0000-0000-000000000001"
    shutil.copytree(backups / own, tmp_path / lost)
    report = verify(tenancy, folder=tmp_path)
    assert report.is_good
    assert [note for note in report.notes if lost in note and "is lost" in note]
    assert [school.notes for school in report.schools] == [["it has no backup in this folder"]]

    shutil.copytree(backups / own, tmp_path / own)
    file = max((tmp_path / own).iterdir())
    file.write_bytes(file.read_bytes()[:-100])
    assert any(
        "its newest backup: The file is no backup" in fault for fault in faults(tenancy, folder=tmp_path)
    )

    shutil.copy(max((tmp_path / lost).iterdir()), file)
    assert faults(tenancy, folder=tmp_path) == []

    key = new_identity()
    back_up_all(tenancy, tmp_path, encrypt_to=[str(key.to_public())])
    assert any("encrypted" in fault for fault in faults(tenancy, folder=tmp_path))
    assert faults(tenancy, folder=tmp_path, identities=[key]) == []
