"""The front end for TensorFlow's GraphDef, text and binary.

Read: file, operators, operations, translator, importer.
"""
