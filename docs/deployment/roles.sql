-- Gives each school a role of its own, and the schools' owner their tables (update.md, "Schools without roles").
-- Run it as a superuser of the server, in the database of the schools, while nothing serves:
--
--     psql --set serves=LOGIN --set provisions=LOGIN --set owner=LOGIN_owner --file roles.sql DATABASE
--
-- Where one login serves and provisions, it is the owner, too. Run again it changes nothing.
\set ON_ERROR_STOP on
CREATE TEMPORARY VIEW schools AS
    SELECT oid, nspname AS name FROM pg_namespace WHERE nspname ~ '^school_[0-9a-f]{32}$';
SELECT format('CREATE ROLE %I NOLOGIN NOINHERIT', name),
    format('GRANT %I TO %I WITH ADMIN TRUE, INHERIT FALSE, SET TRUE', name, :'provisions')
FROM (SELECT name FROM schools UNION SELECT :'owner') AS roles WHERE to_regrole(quote_ident(name)) IS NULL \gexec
SELECT format('ALTER SCHEMA %I OWNER TO %I', name, :'owner'), format('GRANT USAGE ON SCHEMA %I TO %1$I', name)
FROM schools \gexec
SELECT format('ALTER TABLE %s OWNER TO %I', c.oid::regclass, :'owner'),
    format('GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO %I', c.oid::regclass, name)
FROM schools JOIN pg_class c ON c.relnamespace = schools.oid WHERE c.relkind = 'r' \gexec
SELECT format('ALTER ROUTINE %s OWNER TO %I', p.oid::regprocedure, :'owner')
FROM schools JOIN pg_proc p ON p.pronamespace = schools.oid \gexec
-- The audit log is added to, and never changed.
SELECT format('REVOKE UPDATE, DELETE ON %I.audit_entries FROM %1$I', name) FROM schools \gexec
SELECT format('REVOKE UPDATE, DELETE ON %I.change_sets FROM %1$I', name),
    format('GRANT UPDATE (number) ON %I.change_sets TO %1$I', name)
FROM schools WHERE to_regclass(format('%I.change_sets', name)) IS NOT NULL \gexec
-- From now on the login has no rights but those of the roles that it becomes.
SELECT format('REVOKE ALL ON ALL TABLES IN SCHEMA %I FROM %I', name, :'serves'),
    format('REVOKE ALL ON SCHEMA %I FROM %I', name, :'serves')
FROM schools WHERE :'serves' <> :'owner' \gexec
