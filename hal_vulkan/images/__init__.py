"""Images: what a device's formats can do, images and their views, samplers, and buffers of texels.

Read: format_features, sampler, image_view, image, region, texel_buffer.
"""
