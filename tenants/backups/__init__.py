"""One school in one file, and back.

`backup`          writing a school into a file, as of one moment
`restore`         a school from its file, here or elsewhere
`archive`         the file: a zip of a dump and its manifest
`restore_script`  the statements of a dump: judged, and put into another schema
`checksums`       rows and checksum of each table
"""
