"""File formats that several folders read: FlatBuffers, Vulkan executables (VKE1), NumPy headers, element types.

Imports: the ground files at the root. Its files are imported by name: FlatBuffers are read without loading NumPy.

Read: `element_type`, `npy`; `flatbuffer`, `vke1`, `vke1_reader`, `vke1_writer`.
"""
