"""Reports for people: self-contained pages, and the same figures as CSV, Parquet and JSON next to them.

write          a night's reports, and the page of all nights
written_pages  where they are
blocked_nights  the nights that the audit has blocked
page_files     the files of one page
page           a page and its sections
read           the relations of the published file, within a scope
digest, parity, promotions, availability    the four pages
case_page, property_pages                   the pages of cases and properties
case_problems  problems for messages and the terminal
dictionary     the data dictionary
serve          the pages for a browser on this machine

Only what draws or writes pages imports the drawing library, which takes a second and a gigabyte of address space.
"""
