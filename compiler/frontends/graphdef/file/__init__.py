"""TensorFlow's graph files: messages, tensors, and the graph's nodes in order.

Read: messages, document, tensors, graph, plan.
"""
