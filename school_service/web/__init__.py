"""The conventions of the API, each said once.

`blueprint`   what a view is wrapped in: permission, validation, rendering, and how these appear in the document
`life`        token, school, transaction, commit
`rendering`   read models rendered to JSON by PostgreSQL
`schema`      the house Schema and its fields
`errors`      one table from exceptions to answers, in one shape
`answers`     what each status of an error means, for the document
`parsing`     bodies: JSON, size, nesting, uploads
`tracing`     request ids and logs
`documents`   /openapi.json and /docs
"""
