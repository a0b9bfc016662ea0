// A mip level of lines from the level above it, for queues that do not blit.
//
// Binding 0: the level above, with a sampler. Binding 1: the level, written without a format.
// Push constants: none.
// Groups: (ceil(width / 64), layers, 1) of the level.
// Needs: shaderStorageImageWriteWithoutFormat; images of one dimension.

#version 450

#extension GL_GOOGLE_include_directive : require

#define LOCAL local_size_x = 64
#define SAMPLER sampler1DArray
#define IMAGE image1DArray
#define INTEGERS ivec2
#define AT vec2((at.x + 0.5) / size.x, at.y)
#include "mip.glsl"
