"""Values as text, for command lines, and the files that they refer to.

Read: elements, files, parse, format, image_text, sampler_text.
"""
