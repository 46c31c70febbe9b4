"""The conventions of the API, each said once.

`blueprint`         what a view is wrapped in: permission, validation, rendering, and how these are documented
`operations`        what the decorators of a view say of it, once
`request_scope`     token, school, transaction, commit; below it, each above the next:
`linking`           the user of an outside token, by the link of its identity
`reading`           requests that read, in one message or two
`admitting`         who sends a request, judged by the state that was read of them
`transactions`      transactions in a school, and what has become of it where one fails
`app_state`         what all requests of an application share
`rendering`         read models rendered to JSON by PostgreSQL
`paging`            pages of lists and their envelope
`fields`            the fields of input
`schemas`           the base of all schemas, and those that every feature shares
`body_parser`       bodies: JSON, size, nesting, uploads
`interface_operations`  which operations are the interface's, and parameters that an operation does not know
`idempotency`       Idempotency-Key: a POST that is sent again is done once
`entity_tags`       ETag, If-None-Match and If-Match
`response_headers`  header fields of every answer, and of answers to pages of other origins (CORS)
`application`       Flask's application: its JSON, its answers, its dispatch
`error_responses`   one table from exceptions to answers, in one shape
`error_bounds`      how much an error tells
`integrity_errors`  violated constraints, as the client reads of them
`openapi`           the OpenAPI document, and what each status of an error means in it
`docs_page`         /openapi.json and /docs
`request_log`       request ids and logs
"""
