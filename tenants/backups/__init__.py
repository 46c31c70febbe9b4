"""One school in one file, and back.

`backup`           writing a school into a file, as of one moment
`backup_all`       writing every school, again and again, and removing older files
`restore`          a school from its file, here or elsewhere
`archive`          the file: a zip of a school's rows and their manifest
`encryption`       files for the owner of a key alone to read
`row_script`       the rows as a script of COPY, written and read
`table_rows`       the rows of a script, and nothing else of it
`revision_tables`  the tables of a school's schema at a revision
`checksums`        rows and checksum of each table
`row_sums`         the same of the rows in a file
"""
