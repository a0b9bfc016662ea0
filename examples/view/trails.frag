// What was there before, fading: pumice view trails.frag --channel 0=previous
void mainImage(out vec4 color, in vec2 position) {
    vec2 uv = position / iResolution.xy;
    vec3 before = textureLod(iChannel0, 0.5 + 0.995 * (uv - 0.5), 0.0).rgb;
    vec2 p = (2.0 * position - iResolution.xy) / iResolution.y;
    color = vec4(0.97 * before, 1.0);
    for (int i = 0; i < 4; i++) {
        float t = iTime * 1.3 + 1.57 * float(i);
        vec2 to = p - vec2(1.2 * sin(t), 0.8 * sin(1.7 * t));
        color.rgb += exp(-300.0 * dot(to, to)) * (0.5 + 0.5 * cos(float(i) + vec3(0.0, 2.0, 4.0)));
    }
}
