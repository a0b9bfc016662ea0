"""Programs as data: types, attributes, operations, and their text form.

Imports: formats and the ground.
Read: types, element_types, attributes, operation, copying, source, scanner, type_parser, attribute_parser, dense,
convolution, location_parser, parser, printer, syntax.
"""
