"""Programs as data: types, attributes, operations, and their text form.

Imports: the ground.
Read: types, attributes, operation, copying, source, scanner, type_parser, attribute_parser, dense, convolution,
location_parser, parser, printer, syntax.
"""
