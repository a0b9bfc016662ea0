// A mip level of volumes from the level above it, for queues that do not blit.
//
// Binding 0: the level above, with a sampler. Binding 1: the level, written without a format.
// Push constants: none.
// Groups: (ceil(width / 4), ceil(height / 4), ceil(depth / 4)) of the level.
// Needs: shaderStorageImageWriteWithoutFormat.

#version 450

#extension GL_GOOGLE_include_directive : require

#define LOCAL local_size_x = 4, local_size_y = 4, local_size_z = 4
#define SAMPLER sampler3D
#define IMAGE image3D
#define INTEGERS ivec3
#define AT (vec3(at) + 0.5) / vec3(size)
#include "mip.glsl"
