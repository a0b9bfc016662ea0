// A ball over a chequered floor, by marching along rays. The mouse moves the light.
float height(vec3 p) { return p.y + 1.0; }
float ball(vec3 p) { return length(p - vec3(0.0, 0.25 * abs(sin(2.0 * iTime)), 0.0)) - 0.7; }
float scene(vec3 p) { return min(height(p), ball(p)); }

vec3 normal(vec3 p) {
    vec2 e = vec2(0.001, 0.0);
    return normalize(vec3(scene(p + e.xyy) - scene(p - e.xyy), scene(p + e.yxy) - scene(p - e.yxy),
                          scene(p + e.yyx) - scene(p - e.yyx)));
}

float march(vec3 from, vec3 along, float far) {
    float t = 0.02;
    for (int i = 0; i < 80 && t < far; i++) {
        float d = scene(from + t * along);
        if (d < 0.001 * t) break;
        t += d;
    }
    return t;
}

void mainImage(out vec4 color, in vec2 position) {
    vec2 p = (2.0 * position - iResolution.xy) / iResolution.y;
    vec2 aim = iMouse.x > 0.0 ? 2.0 * iMouse.xy / iResolution.xy - 1.0 : vec2(cos(0.5 * iTime), 0.5);
    vec3 light = normalize(vec3(2.0 * aim.x, 1.2 + aim.y, -1.5));
    vec3 eye = vec3(0.0, 0.3, -3.0), along = normalize(vec3(p, 1.8));
    float far = 20.0, t = march(eye, along, far);
    vec3 sky = mix(vec3(0.75, 0.85, 0.95), vec3(0.25, 0.45, 0.75), clamp(p.y + 0.3, 0.0, 1.0));
    color = vec4(sky, 1.0);
    if (t >= far) return;
    vec3 at = eye + t * along, n = normal(at);
    float chequer = mod(floor(at.x) + floor(at.z - 0.5 * iTime), 2.0);
    vec3 paint = ball(at) < height(at) ? vec3(0.9, 0.35, 0.2) : mix(vec3(0.25), vec3(0.8), chequer);
    float shade = march(at + 0.01 * n, light, 5.0) < 5.0 ? 0.3 : 1.0;
    float shine = pow(max(dot(reflect(along, n), light), 0.0), 30.0);
    vec3 lit = paint * (0.25 + 0.75 * shade * max(dot(n, light), 0.0)) + 0.4 * shade * shine;
    color.rgb = pow(mix(lit, sky, smoothstep(4.0, far, t)), vec3(0.8));
}
