"""TensorFlow's graph files: messages, tensors, and the graph's nodes in order.

Imports: compiler.ir, base, status.
Read: messages, document, tensors, graph, plan.
"""
