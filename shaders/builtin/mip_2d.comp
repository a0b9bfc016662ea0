// A mip level of layers of pictures from the level above it, for queues that do not blit.
//
// Binding 0: the level above, with a sampler. Binding 1: the level, written without a format.
// Push constants: none.
// Groups: (ceil(width / 8), ceil(height / 8), layers) of the level.
// Needs: shaderStorageImageWriteWithoutFormat.

#version 450

#extension GL_GOOGLE_include_directive : require

#define LOCAL local_size_x = 8, local_size_y = 8
#define SAMPLER sampler2DArray
#define IMAGE image2DArray
#define INTEGERS ivec3
#define AT vec3((vec2(at.xy) + 0.5) / vec2(size.xy), at.z)
#include "mip.glsl"
