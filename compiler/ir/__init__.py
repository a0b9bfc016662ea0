"""Programs as data: types, attributes, operations, and their text form.

Read: sizes, source, scanner, types, attributes, convolution, dense, element_types, operation, copying, printer,
type_parser, attribute_parser, location_parser, parser, syntax.
"""
