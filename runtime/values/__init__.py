"""Values as text, as command lines take and print them, and the files that they name.

Imports: formats, status.
Read: elements, files, parse, format.
"""
