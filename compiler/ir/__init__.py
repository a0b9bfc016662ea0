"""Programs as data: types, attributes, operations, and their text form.

Read: types, element_types, sizes, attributes, operation, copying, source, scanner, type_parser, attribute_parser,
dense, convolution, location_parser, parser, printer, syntax.
"""
