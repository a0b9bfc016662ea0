// Waves of light: the least that a shader of Shadertoy needs.
void mainImage(out vec4 color, in vec2 position) {
    vec2 p = (2.0 * position - iResolution.xy) / iResolution.y;
    vec3 light = vec3(0.0);
    for (int i = 0; i < 3; i++) {
        float wave = 0.35 * sin(2.0 * p.x + iTime * (0.7 + 0.3 * float(i)) + 2.1 * float(i));
        float distance = abs(p.y - wave);
        light[i] += 0.03 / (distance + 0.01) + smoothstep(1.5 * fwidth(p.y), 0.0, distance);
    }
    color = vec4(1.0 - exp(-light), 1.0);
}
