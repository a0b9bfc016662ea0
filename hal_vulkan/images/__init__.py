"""Images: the features of a device's formats, images and their views, samplers, and buffers of texels.

Read: format_features, sampler, image_view, image, region, texel_buffer.
"""
