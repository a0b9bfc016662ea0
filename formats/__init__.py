"""File formats that several folders read: FlatBuffers, Vulkan executables (VKE1), NumPy headers, element types, and
the formats of image texels.

Its files are imported by name: FlatBuffers are read without loading NumPy.

Read: `element_type`, `image_format`, `image_texels`, `picture`, `npy`; `flatbuffer`, `vke1`, `vke1_reader`,
`vke1_writer`.
"""
