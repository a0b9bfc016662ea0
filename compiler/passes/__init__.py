"""What happens to a program between the front end and the targets.

Imports: compiler.ir, compiler.dialects.
Read: expression, special_functions, expand.
"""
