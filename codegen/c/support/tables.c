/* What the program asks of a device: names, and where they are among its features. */
typedef struct features {
    VkPhysicalDeviceFeatures2 core;
    VkPhysicalDeviceVulkan11Features v11;
    VkPhysicalDeviceVulkan12Features v12;
    VkPhysicalDeviceVulkan12Properties properties;
} features;

typedef struct feature {
    const char *name;
    size_t offset;
} feature;

enum { NO_FEATURE = UINT16_MAX };

/* A descriptor of a kernel. */
typedef struct descriptor {
    uint32_t set, binding, type;
} descriptor;

typedef struct pipeline_source {
    const char *entry_point;
    const descriptor *bindings;
    uint32_t binding_count, set_count;
    uint32_t push_bytes;
    uint32_t shader;
} pipeline_source;

typedef struct executable_source {
    const pipeline_source *pipelines;
    const uint16_t *features; /* that its shaders declare, up to NO_FEATURE */
    uint32_t pipeline_count;
    uint32_t subgroup_operations, least_subgroup_size, subgroup_size; /* the only size; 0 for any */
} executable_source;
