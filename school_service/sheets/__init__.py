"""Excel in and out, and .csv in, for every sheet of the service: imports, score sheets, metric sheets.

`columns`        what a column of a sheet is, for writing and reading alike
`workbook_frame` all of a workbook but its rows, made once for each layout
`sheet_writer`   workbooks made to be filled in: the rows, written into the frame
`report_writer`  workbooks made to be read and printed
`uploads`        the steps of an upload, in the order that all sheets have
`downloads`      what a sheet says of its download, so that an upload loses nothing
`sheet_files`    which kind of file was uploaded
`csv_reader`     a table of comma-separated values
`xlsx_reader`    opening a workbook that anyone may have made, within fixed bounds
`xml_stream`     its large XML parts, read item by item
`xstring`        characters that XML can't carry
`sheet_reader`   its rows by column, and the errors in them
`row_errors`     how the errors of rows are reported
"""
