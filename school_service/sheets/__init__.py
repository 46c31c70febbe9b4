"""Excel and .csv in and out, for every sheet of the service: imports, score sheets, metric sheets, broadsheets.

`columns`         the columns of a sheet, for writing and reading alike
`sheet_writer`    workbooks made to be filled in
`report_writer`   workbooks made to be read and printed
`workbook_layout` how both describe a sheet: styles, rules, protection, pages, rows
`workbook_writer` how any workbook is written: its frame, made once for each layout, and its rows
`uploads`         the steps of an upload, in one order for all sheets
`downloads`       the download of a sheet, noted in the sheet itself: an upload loses nothing
`sheet_files`     the kind of an uploaded file
`csv_reader`      a table of comma-separated values
`csv_writer`      such a table, none of whose texts becomes a formula
`xlsx_reader`     opening a workbook of any origin, within fixed bounds
`xml_stream`      the rows of its sheets and its shared strings, read item by item
`sheet_reader`    its rows by column, and the errors in them
`row_errors`      how the errors of rows are reported
"""
