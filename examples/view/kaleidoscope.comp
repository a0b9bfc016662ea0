// A pixel a call, as an integer: mainCompute needs neither a workgroup size nor bindings.
vec4 mainCompute(ivec2 pixel) {
    vec2 p = (2.0 * vec2(pixel) - iResolution.xy) / iResolution.y;
    float angle = atan(p.y, p.x), radius = length(p);
    const float slice = 6.2831853 / 8.0;
    angle = abs(mod(angle + 0.2 * iTime, slice) - 0.5 * slice);
    p = radius * vec2(cos(angle), sin(angle));
    vec3 color = vec3(0.0);
    for (int i = 0; i < 5; i++) {
        p = abs(p) / dot(p, p) - vec2(0.9, 0.5 + 0.1 * sin(0.3 * iTime));
        color += exp(-3.0 * abs(p.x)) * (0.5 + 0.5 * cos(float(i) + iTime + vec3(0.0, 2.0, 4.0)));
    }
    return vec4(color / (1.0 + color), 1.0);
}
