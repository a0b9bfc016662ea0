#version 450
// A reaction of two substances that diffuse (Gray and Scott), from frame to frame: state images keep their texels.
// The mouse adds the second substance.
layout(local_size_x = 8, local_size_y = 8) in;
layout(binding = 0, rg32f) uniform image2D even;
layout(binding = 1, rg32f) uniform image2D odd;
layout(binding = 2, rgba8) writeonly uniform image2D picture;

vec2 at(ivec2 p, ivec2 size) {
    p = (p + size) % size;
    return (iFrame & 1) == 0 ? imageLoad(even, p).xy : imageLoad(odd, p).xy;
}

void main() {
    ivec2 p = ivec2(gl_GlobalInvocationID.xy), size = imageSize(picture);
    if (any(greaterThanEqual(p, size))) return;
    vec2 now = at(p, size);
    if (iFrame == 0) {
        ivec2 cell = p / 24;
        now = vec2(1.0, (cell.x * 7 + cell.y * 13) % 11 == 0 ? 0.6 : 0.0);
    } else {
        vec2 spread = -now;
        for (int y = -1; y <= 1; y++)
            for (int x = -1; x <= 1; x++)
                if (x != 0 || y != 0) spread += at(p + ivec2(x, y), size) * (x == 0 || y == 0 ? 0.2 : 0.05);
        float both = now.x * now.y * now.y;
        now += vec2(spread.x - both + 0.037 * (1.0 - now.x), 0.5 * spread.y + both - 0.097 * now.y);
        if (iMouse.z > 0.0 && distance(vec2(p), iMouse.xy) < 6.0) now.y = 0.6;
    }
    if ((iFrame & 1) == 0) imageStore(odd, p, vec4(now, 0.0, 0.0));
    else imageStore(even, p, vec4(now, 0.0, 0.0));
    float v = clamp(3.0 * now.y, 0.0, 1.0);
    imageStore(picture, p, vec4(v * v, v, 0.25 + 0.6 * v * (1.0 - now.x), 1.0));
}
