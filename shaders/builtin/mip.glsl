// A mip level from the level above it: each texel is sampled at its centre, as a blit of the whole level does.
//
// Includers define LOCAL, SAMPLER, IMAGE, INTEGERS (the vector of a coordinate) and AT, the coordinate in
// the level above of the texel `at` of a level of `size`.

layout(LOCAL) in;
layout(set = 0, binding = 0) uniform SAMPLER above;
layout(set = 0, binding = 1) uniform writeonly IMAGE level;

void main() {
  INTEGERS at = INTEGERS(gl_GlobalInvocationID);
  INTEGERS size = imageSize(level);
  if (all(lessThan(at, size)))
    imageStore(level, at, textureLod(above, AT, 0.0));
}
